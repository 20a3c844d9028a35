//! Making room at the cap, or where every server is full: ending a lobby that nobody needs any more.

use std::time::Duration;

use super::{Matchmaker, Search};
use crate::{
    errors::Error,
    ids::LobbyId,
    lobby::Lobby,
    models::Pool,
    store::servers::{PlacementPool, Server},
};

/// Servers whose lobbies one search reads at most, the dead and the living each.
const SERVERS_SEARCHED_MAX: usize = 32;
/// Lobbies of each pool, or of each server, that one search reads at most.
const LOBBIES_SEARCHED_MAX: usize = 100;

impl Matchmaker {
    /// Ends one lobby of the namespace that may end: of a dead server, or empty past its idle time. Whether it did.
    ///
    /// Reads much, so a fruitless search is not repeated within a second by the same instance.
    pub(super) async fn make_room(&self, search: &Search) -> Result<bool, Error> {
        let now = self.ambient.now();
        let namespace_id = &search.settings.namespace.namespace_id;
        if self.recall.searched_in_vain(namespace_id, now) {
            return Ok(false);
        }
        let (dead, living): (Vec<_>, Vec<_>) =
            self.used_servers(search).await?.into_iter().partition(|server| server.lease_until <= now);
        let has_ended = self.end_one_of_servers(search, &dead).await?
            || self.end_one_candidate(search).await?
            || self.end_one_of_servers(search, &living).await?;
        if !has_ended {
            self.recall.remember_vain_search(namespace_id, now);
        }
        Ok(has_ended)
    }

    /// The servers of the namespace that run a lobby.
    async fn used_servers(&self, search: &Search) -> Result<Vec<Server>, Error> {
        let mut used = Vec::new();
        for region_id in search.settings.game.regions.keys() {
            let namespace_id = search.settings.namespace.namespace_id.clone();
            let pool = PlacementPool { namespace_id, region_id: region_id.clone() };
            used.extend(self.store.servers(&pool).await?.into_iter().filter(|server| server.used > 0));
        }
        Ok(used)
    }

    /// Whoever is in them, lobbies of a dead server may end; those of a living one, of any version, when they are empty.
    async fn end_one_of_servers(&self, search: &Search, servers: &[Server]) -> Result<bool, Error> {
        for server in servers.iter().take(SERVERS_SEARCHED_MAX) {
            let lobbies = self.store.lobbies_of_server(&server.server, LOBBIES_SEARCHED_MAX).await?;
            if self.end_one(search, &lobbies).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A lobby of the current version in which every seat lapsed is always a candidate.
    async fn end_one_candidate(&self, search: &Search) -> Result<bool, Error> {
        let version = &search.settings.version;
        for (game_mode, mode) in &version.config.game_modes {
            for region_id in &mode.regions {
                let pool = Pool {
                    namespace_id: search.settings.namespace.namespace_id.clone(),
                    version_id: version.version_id.clone(),
                    game_mode: game_mode.clone(),
                    region_id: region_id.clone(),
                };
                let candidates =
                    self.store.candidates(&pool, self.ambient.now(), LOBBIES_SEARCHED_MAX).await?;
                let lobbies: Vec<_> = candidates.into_iter().map(|candidate| candidate.lobby_id).collect();
                if self.end_one(search, &lobbies).await? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn end_one(&self, search: &Search, ids: &[LobbyId]) -> Result<bool, Error> {
        if ids.is_empty() {
            return Ok(false);
        }
        for lobby in self.store.lobbies(ids).await? {
            if self.may_end(search, &lobby).await?
                && self.store.end_unneeded_lobby(&lobby, self.ambient.now()).await?
            {
                // Its server has a place again.
                let Pool { namespace_id, region_id, .. } = lobby.pool;
                self.recall.forget_servers(&PlacementPool { namespace_id, region_id });
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn may_end(&self, search: &Search, lobby: &Lobby) -> Result<bool, Error> {
        let game_id = &search.settings.game.game_id;
        let version = self.settings.version(game_id, &lobby.pool.version_id).await?;
        let mode = version.as_ref().and_then(|version| version.config.game_modes.get(&lobby.pool.game_mode));
        let idle = Duration::from_secs(mode.map_or(0, |mode| u64::from(mode.idle_seconds)));
        Ok(lobby.may_end(idle, self.ambient.now()))
    }
}

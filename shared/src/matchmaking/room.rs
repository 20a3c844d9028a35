//! Making room at the cap, or where every server is full: ending a lobby that nobody needs any more.

use super::{Matchmaker, Search, create::NoRoom};
use crate::{
    errors::Error,
    ids::{LobbyId, RegionId},
    models::Pool,
    store::{
        ending::EndOutcome,
        servers::{PlacementPool, Server},
    },
};

/// Servers of a region that one search reads at most.
const SERVERS_SEARCHED_MAX: usize = 1_000;
/// Servers whose lobbies one search reads at most, of the dead and of the living each.
const SERVERS_ENTERED_MAX: usize = 32;
/// Lobbies of each pool, or of each server, that one search reads at most.
const LOBBIES_SEARCHED_MAX: usize = 100;

impl Matchmaker {
    /// Ends one lobby of the namespace that may end: of a dead server, or empty past its idle time. Whether it did.
    ///
    /// Where a server's place is needed, only a lobby of the wanted region helps; at the cap one of that region is the best,
    /// since it frees a place there, too. Reads much, so a fruitless search is not repeated within a second by the same
    /// instance.
    pub(super) async fn make_room(&self, search: &Search, needed: NoRoom) -> Result<bool, Error> {
        let now = self.ambient.now();
        let wanted = &search.criteria.new_lobby.pool;
        if self.recall.searched_in_vain(wanted, needed, now) {
            return Ok(false);
        }
        if self.make_room_in(search, &wanted.region_id).await? {
            return Ok(true);
        }
        if needed == NoRoom::AtCap {
            let others = search.settings.game.regions.keys().filter(|region| **region != wanted.region_id);
            for region_id in others {
                if self.make_room_in(search, region_id).await? {
                    return Ok(true);
                }
            }
        }
        self.recall.remember_vain_search(wanted, needed, now);
        Ok(false)
    }

    async fn make_room_in(&self, search: &Search, region_id: &RegionId) -> Result<bool, Error> {
        let now = self.ambient.now();
        let (dead, living): (Vec<_>, Vec<_>) = self
            .used_servers(search, region_id)
            .await?
            .into_iter()
            .partition(|server| server.lease_until <= now);
        Ok(self.end_one_of_servers(&dead).await?
            || self.end_one_candidate(search, region_id).await?
            || self.end_one_of_servers(&living).await?)
    }

    /// The servers of a region that run a lobby.
    async fn used_servers(&self, search: &Search, region_id: &RegionId) -> Result<Vec<Server>, Error> {
        let namespace_id = search.settings.namespace.namespace_id.clone();
        let pool = PlacementPool { namespace_id, region_id: region_id.clone() };
        let (mut used, mut read, mut cursor) = (Vec::new(), 0, None);
        while read < SERVERS_SEARCHED_MAX {
            let (servers, next) = self.store.servers(&pool, cursor).await?;
            read += servers.len();
            used.extend(servers.into_iter().filter(|server| server.used > 0));
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(used)
    }

    /// Whoever is in them, lobbies of a dead server may end; those of a living one, of any version, when they are empty.
    async fn end_one_of_servers(&self, servers: &[Server]) -> Result<bool, Error> {
        // Finds that need room at the same time begin at different servers, so as not to meet at one lobby.
        let begin = self.ambient.below(servers.len() as u64);
        let begin = usize::try_from(begin).unwrap_or(0);
        for server in servers.iter().cycle().skip(begin).take(servers.len().min(SERVERS_ENTERED_MAX)) {
            let page = self.store.lobbies_of_server(&server.server, None, LOBBIES_SEARCHED_MAX).await?;
            if self.end_one(&page.lobby_ids).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A lobby of the current version in which every seat lapsed is always a candidate.
    async fn end_one_candidate(&self, search: &Search, region_id: &RegionId) -> Result<bool, Error> {
        let version = &search.settings.version;
        for (game_mode, mode) in &version.config.game_modes {
            if !mode.regions.contains(region_id) {
                continue;
            }
            let pool = Pool {
                namespace_id: search.settings.namespace.namespace_id.clone(),
                version_id: version.version_id.clone(),
                game_mode: game_mode.clone(),
                region_id: region_id.clone(),
            };
            let candidates = self.store.candidates(&pool, self.ambient.now(), LOBBIES_SEARCHED_MAX).await?;
            let lobbies: Vec<_> = candidates.into_iter().map(|candidate| candidate.lobby_id).collect();
            if self.end_one(&lobbies).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn end_one(&self, ids: &[LobbyId]) -> Result<bool, Error> {
        if ids.is_empty() {
            return Ok(false);
        }
        let mut lobbies = self.store.lobbies(ids).await?;
        let begin = self.ambient.below(lobbies.len() as u64);
        lobbies.rotate_left(usize::try_from(begin).unwrap_or(0));
        for lobby in lobbies {
            let Some(cause) = lobby.end_cause(self.ambient.now()) else { continue };
            match self.store.end_lobby(&lobby, cause, &self.ambient).await {
                Ok(EndOutcome::Ended) => {
                    // Its server has a place again.
                    let Pool { namespace_id, region_id, .. } = lobby.pool;
                    self.recall.forget_servers(&PlacementPool { namespace_id, region_id });
                    return Ok(true);
                }
                // Somebody else ends it, or it is needed again: on to the next.
                Ok(EndOutcome::AlreadyEnded | EndOutcome::Outdated) | Err(Error::Contention) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

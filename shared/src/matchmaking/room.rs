//! Making room at the cap, or where every server is full: ending a lobby that nobody needs any more.

use super::{Matchmaker, Search};
use crate::{errors::Error, ids::LobbyId, lobby::Lobby, store::servers::PlacementPool};

/// Servers whose lobbies one search reads at most.
const SERVERS_SEARCHED_MAX: usize = 32;

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
        let mut searched = 0;
        for region_id in search.settings.game.regions.keys() {
            let pool = PlacementPool { namespace_id: namespace_id.clone(), region_id: region_id.clone() };
            let mut servers = self.store.servers(&pool).await?;
            servers.retain(|server| server.used > 0);
            // Dead servers first: their lobbies may end whoever is in them.
            servers.sort_by_key(|server| server.lease_until);
            for server in servers {
                let lobbies: Vec<LobbyId> = self.store.lobbies_of_server(&server.server).await?;
                if lobbies.is_empty() {
                    continue;
                }
                for lobby in self.store.lobbies(&lobbies).await? {
                    if self.may_end(search, &lobby).await?
                        && self.store.end_unneeded_lobby(&lobby, now).await?
                    {
                        self.recall.correct_server(&server, None);
                        return Ok(true);
                    }
                }
                searched += 1;
                if searched >= SERVERS_SEARCHED_MAX {
                    break;
                }
            }
        }
        self.recall.remember_vain_search(namespace_id, now);
        Ok(false)
    }

    async fn may_end(&self, search: &Search, lobby: &Lobby) -> Result<bool, Error> {
        let game_id = &search.settings.game.game_id;
        let version = self.settings.version(game_id, &lobby.pool.version_id).await?;
        let mode = version.as_ref().and_then(|version| version.config.game_modes.get(&lobby.pool.game_mode));
        let idle = std::time::Duration::from_secs(mode.map_or(0, |mode| u64::from(mode.idle_seconds)));
        Ok(lobby.may_end(idle, self.ambient.now()))
    }
}

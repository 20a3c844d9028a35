//! Refusing a find again where a search for capacity was in vain a moment ago (decision 28).

use futures_util::future::try_join;

use crate::{
    matchmaking::{matchmaker::Matchmaker, memory::searches::Need, outcomes::NoCapacity, search::Search},
    models::{errors::Error, pool::Pool, standing::may_displace},
    seating::seeker::Seeker,
    store::creation::BURST_WINDOW,
};

/// Game servers that are read again before a refusal from memory.
const SERVERS_CONFIRMED_MAX: usize = 3;

impl Matchmaker {
    /// Why a creation would find no capacity, if a search was in vain within the last second, and reads show
    /// neither a place since nor, for a find that `may_share` lobbies with others, a burst that leads to a
    /// seat (decision 29): a refusal then costs no election and no search. A lobby that ended in another
    /// region, or on another server than the few that are read, is found within that second.
    pub(super) async fn known_shortage(
        &self,
        search: &Search,
        may_share: bool,
        seeker: &Seeker,
    ) -> Result<Option<NoCapacity>, Error> {
        let (now, wanted) = (self.ambient.now(), &search.criteria.new_lobby.pool);
        let namespace = &search.settings.namespace;
        let mut need = Need { capacity: NoCapacity::NoServer, may_displace: true };
        let known = |need: Need| {
            let is_at_cap = self.searches.is_full(namespace, need.may_displace, now);
            (is_at_cap, self.searches.failed_search(wanted, need, now))
        };
        let (mut is_at_cap, mut failed) = known(need);
        if !is_at_cap && failed.is_none() {
            need.may_displace = false;
            (is_at_cap, failed) = known(need);
            if (is_at_cap || failed.is_some()) && may_displace(seeker.doubt().await?) {
                return Ok(None);
            }
        }
        if !is_at_cap && failed.is_none() {
            return Ok(None);
        }
        let key = search.head_key();
        let burst = async { if may_share { self.store.burst(&key).await } else { Ok(None) } };
        let (has_place, burst) = try_join(self.has_place_since(wanted, is_at_cap), burst).await?;
        let is_under_way = burst.is_some_and(|burst| {
            now.since(burst.opened_at) < BURST_WINDOW && self.bursts.exhausted(&key) != Some(burst)
        });
        if has_place {
            self.searches.forget_full(&wanted.namespace_id);
        }
        if has_place || is_under_way {
            return Ok(None);
        }
        Ok(Some(match failed {
            Some(obstacles) if !is_at_cap => {
                seeker.trace().servers(obstacles);
                NoCapacity::NoServer
            }
            _ => NoCapacity::AtCap,
        }))
    }

    /// Whether a server has a place for a lobby of `wanted` since a search was in vain: at the cap one of
    /// those known, as they are, with a part of it left, else any.
    async fn has_place_since(&self, wanted: &Pool, is_at_cap: bool) -> Result<bool, Error> {
        if !is_at_cap {
            return Ok(self.learn_servers(wanted).await?.1);
        }
        let now = self.ambient.now();
        let known = self.servers.some(&wanted.placement(), SERVERS_CONFIRMED_MAX);
        let keys: Vec<_> = known.into_iter().map(|server| server.server).collect();
        let mut seen = self.store.servers_as_they_are(&keys).await?.into_iter();
        let place = seen.find(|server| server.allotted_left() > 0 && server.fits(&wanted.game_mode, now));
        if place.is_some() {
            self.servers.forget(&wanted.placement());
        }
        Ok(place.is_some())
    }
}

//! Refusing a find where a search for capacity was in vain a moment ago (decision 28).

use futures_util::future::try_join;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        matchmaker::Matchmaker,
        outcomes::NoCapacity,
        position::next_lobby,
        search::Search,
        searches::{Need, key_of},
    },
    models::{errors::Error, ids::ServerKey, server::Server, shortage::Obstacles, standing::may_displace},
    seating::seeker::Seeker,
    store::{
        creation::{BURST_WINDOW, Burst},
        failed_searches::{Evidence, SearchKey},
    },
};

/// Game servers that are read again before a refusal from memory.
const SERVERS_CONFIRMED_MAX: usize = 3;
/// The searches that may have been in vain for a find. One that might displace lobbies is in vain for every
/// client.
const NEEDS: [Need; 4] = [
    Need { capacity: NoCapacity::AtCap, may_displace: true },
    Need { capacity: NoCapacity::NoServer, may_displace: true },
    Need { capacity: NoCapacity::AtCap, may_displace: false },
    Need { capacity: NoCapacity::NoServer, may_displace: false },
];

/// A search that was in vain.
struct Known {
    need: Need,
    obstacles: Obstacles,
}

impl Matchmaker {
    /// Why a creation would find no capacity, if a search was in vain within the last second, and reads show
    /// neither a place since nor, for a find that `may_share` lobbies with others, a burst that leads to a
    /// seat (decision 29): a refusal then costs no election and no search. A lobby that ended in another
    /// region, or on another server than the few that are read, is found within that second.
    ///
    /// An instance that knows of no such search reads the other instances' where it expects one.
    pub(super) async fn known_shortage(
        &self,
        search: &Search,
        may_share: bool,
        seeker: &Seeker,
    ) -> Result<Option<NoCapacity>, Error> {
        match self.failed_before(search, self.ambient.now()) {
            Some(known) => self.confirmed(search, known, may_share, seeker).await,
            None => self.recalled_shortage(search, may_share, seeker).await,
        }
    }

    /// The reason of a search that this instance `known`s to have been in vain, unless a read shows another.
    async fn confirmed(
        &self,
        search: &Search,
        known: Known,
        may_share: bool,
        seeker: &Seeker,
    ) -> Result<Option<NoCapacity>, Error> {
        if !known.counts_for(seeker).await? {
            return Ok(None);
        }
        let wanted = &search.criteria.new_lobby.pool;
        let head = may_share.then(|| search.head_key());
        let servers = self.some_servers(search);
        let (evidence, has_place) = match known.need.capacity {
            NoCapacity::AtCap => {
                let evidence = self.store.evidence(head.as_ref(), &servers, &[]).await?;
                let has_place = self.has_some_left(search, &evidence);
                (evidence, has_place)
            }
            NoCapacity::NoServer => {
                let evidence = self.store.evidence(head.as_ref(), &[], &[]);
                let placement = search.criteria.new_lobby.placement();
                try_join(evidence, self.servers.learn(&placement, &wanted.game_mode, None)).await?
            }
        };
        if has_place {
            self.searches.forget_full(&wanted.namespace_id);
        }
        let is_refused = !has_place && !self.is_under_way(search, (&evidence, None), seeker).await?;
        Ok(is_refused.then(|| known.reason_for(seeker)))
    }

    /// The reason of a search of another instance that was in vain a moment ago, where one is to be expected.
    async fn recalled_shortage(
        &self,
        search: &Search,
        may_share: bool,
        seeker: &Seeker,
    ) -> Result<Option<NoCapacity>, Error> {
        let Some(has_place) = self.has_place_of(search, seeker).await? else { return Ok(None) };
        let head = may_share.then(|| search.head_key());
        let keys = NEEDS.map(|need| key_of(search, need));
        let evidence = self.store.evidence(head.as_ref(), &self.some_servers(search), &keys).await?;
        let Some((known, failed_at)) = self.first_believed(search, &keys, &evidence).await? else {
            return Ok(None);
        };
        if !known.counts_for(seeker).await? {
            return Ok(None);
        }
        let has_place = match known.need.capacity {
            NoCapacity::AtCap => self.has_some_left(search, &evidence),
            NoCapacity::NoServer => has_place,
        };
        let is_refused =
            !has_place && !self.is_under_way(search, (&evidence, Some(failed_at)), seeker).await?;
        Ok(is_refused.then(|| known.reason_for(seeker)))
    }

    /// The first of the searches read that is believed, and when it ended.
    async fn first_believed(
        &self,
        search: &Search,
        keys: &[SearchKey],
        evidence: &Evidence,
    ) -> Result<Option<(Known, Timestamp)>, Error> {
        for ((need, key), failed) in NEEDS.into_iter().zip(keys).zip(&evidence.searches) {
            if let Some(failed) = failed
                && self.searches.is_believed(search, key, failed).await?
            {
                self.searches.believe(search, need, failed.clone());
                let known = Known { need, obstacles: failed.obstacles.clone() };
                return Ok(Some((known, failed.found_at)));
            }
            // Nobody else searches for it within this second.
            if self.searches.has_turn(key, self.ambient.now()) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The search that this instance knows to have been in vain.
    fn failed_before(&self, search: &Search, now: Timestamp) -> Option<Known> {
        let (wanted, namespace) = (&search.criteria.new_lobby.pool, &search.settings.namespace);
        NEEDS.into_iter().find_map(|need| {
            let obstacles = match need.capacity {
                NoCapacity::AtCap => {
                    self.searches.is_full(namespace, need.may_displace, now).then(Obstacles::new)
                }
                NoCapacity::NoServer => self.searches.failed_search(wanted, need, now),
            };
            obstacles.map(|obstacles| Known { need, obstacles })
        })
    }

    /// Whether a game server has a place for the wanted lobby, where a search was probably in vain a moment
    /// ago: this instance knew of one lately, or it knew no servers and reads now that none can run another
    /// lobby without more of the limit. `None` elsewhere.
    async fn has_place_of(&self, search: &Search, seeker: &Seeker) -> Result<Option<bool>, Error> {
        let (now, new) = (self.ambient.now(), &search.criteria.new_lobby);
        let (wanted, placement) = (&new.pool, new.placement());
        let needed = [NoCapacity::AtCap, NoCapacity::NoServer];
        let was_short = self.searches.failed_lately(wanted, &needed, now);
        if !was_short && self.servers.are_known(&placement, now) {
            return Ok(None);
        }
        let has_place = self.servers.learn(&placement, &wanted.game_mode, Some(seeker.trace())).await?;
        let has_left = |server: &Server| server.allotted_left() > 0 && server.fits(&wanted.game_mode, now);
        let is_short = self.servers.count(&placement, has_left) == 0;
        Ok(is_short.then_some(has_place))
    }

    fn some_servers(&self, search: &Search) -> Vec<ServerKey> {
        let servers = self.servers.some(&search.criteria.new_lobby.placement(), SERVERS_CONFIRMED_MAX);
        servers.into_iter().map(|server| server.server).collect()
    }

    /// Whether one of the servers read has a part of the limit left for the wanted lobby. Those known are
    /// forgotten then, for they did not show it.
    fn has_some_left(&self, search: &Search, evidence: &Evidence) -> bool {
        let (now, new) = (self.ambient.now(), &search.criteria.new_lobby);
        let has_left = |server: &Server| server.allotted_left() > 0 && server.fits(&new.pool.game_mode, now);
        let has_some = evidence.servers.iter().any(has_left);
        if has_some {
            self.servers.forget(&new.placement());
        }
        has_some
    }

    /// Whether a burst leads to a seat in the new lobby's pool. One consistent read unit.
    pub(super) async fn is_burst_under_way(&self, search: &Search, seeker: &Seeker) -> Result<bool, Error> {
        let evidence = self.store.evidence(Some(&search.head_key()), &[], &[]).await?;
        self.is_under_way(search, (&evidence, None), seeker).await
    }

    /// Whether the burst read leads to a seat: in its first lobby if it began after the search `failed`, for
    /// that may be about to be created, else in a lobby that is there, which costs one consistent read unit.
    /// One that is not there is created by a client that may displace another, and by nobody if the burst is
    /// older than the search.
    async fn is_under_way(
        &self,
        search: &Search,
        (evidence, failed_at): (&Evidence, Option<Timestamp>),
        seeker: &Seeker,
    ) -> Result<bool, Error> {
        let (key, now) = (search.head_key(), self.ambient.now());
        let seats = search.criteria.party_size;
        let exhausted = self.bursts.exhausted(&key, seats);
        let is_open =
            |burst: &&Burst| now.since(burst.opened_at) < BURST_WINDOW && exhausted.as_ref() != Some(*burst);
        let Some(burst) = evidence.burst.as_ref().filter(is_open) else { return Ok(false) };
        let next = next_lobby(burst, &search.criteria.new_lobby, seats);
        let is_later = failed_at.is_none_or(|failed_at| failed_at < burst.opened_at);
        if is_later && next == burst.first {
            return Ok(true);
        }
        let has_seats = match self.store.lobby(&next).await? {
            Some(lobby) => {
                self.bursts.note_seen(&lobby, now);
                !self.bursts.was_full(&next, seats, burst.opened_at, now)
            }
            None => is_later && may_displace(seeker.doubt().await?),
        };
        if !has_seats {
            self.bursts.remember(&key, burst.clone(), next, now);
            self.bursts.note_exhausted(&key, burst);
        }
        Ok(has_seats)
    }
}

impl Known {
    /// The reason to refuse `seeker`, whose trace gets the obstacles at the game servers.
    fn reason_for(self, seeker: &Seeker) -> NoCapacity {
        if self.need.capacity == NoCapacity::NoServer {
            seeker.trace().servers(self.obstacles);
        }
        self.need.capacity
    }

    /// Whether the search was in vain for the seeker, too.
    async fn counts_for(&self, seeker: &Seeker) -> Result<bool, Error> {
        Ok(self.need.may_displace || !may_displace(seeker.doubt().await?))
    }
}

//! Game servers with places: what an instance knows of them, and how a lobby gets one.
//!
//! A lobby goes to the fullest server. Transactions that conflict at one server's item fail, as do those that
//! come when it is full: each of them within the last second makes the instance draw among four times as many
//! of the fullest servers. Once eight servers have a part of the limit left, it draws only from those
//! (decision 26).

use std::{collections::VecDeque, time::Duration};

use futures_util::future::try_join_all;

use crate::{
    base::{
        ambient::{Ambient, Timestamp},
        cache::BoundedMap,
    },
    matchmaking::{
        limits::{LEARNT_AGE_MAX, drop_old},
        outcomes::Placing,
    },
    models::{
        errors::Error,
        ids::GameMode,
        lobby::EndCause,
        pool::Pool,
        server::{PlacementPool, Server},
    },
    request::trace::Trace,
    rules::criteria::NewLobby,
    store::client::Store,
};

/// The most failures that are counted: creations spread over at most 4^5 servers.
const FAILURES_MAX: usize = 5;
/// Servers with a part of the cap left from which spread creations use only these.
const SERVERS_ALLOTTED_MIN: usize = 8;

/// Long-silent servers, and lobbies of each, that one look for places ends. An hour later, a look finds the
/// others again.
const SERVERS_ENDED_MAX: usize = 16;
const LOBBIES_ENDED_MAX: usize = 8;
/// How long ago a find may have read the servers that it would read once more: a few calls.
const A_MOMENT: Duration = Duration::from_millis(100);
/// Servers among which a draw would often hit the same one for two lobbies of a burst.
const SERVERS_IN_TURN_MAX: u32 = 8;
/// More servers than are known of any region.
const SERVERS_MAX: u64 = 1 << 16;

/// The servers that an instance knows, and reads.
#[derive(Debug)]
pub(super) struct Servers {
    store: Store,
    ambient: Ambient,
    /// How old those may be on which a lobby is placed.
    age_max: Duration,
    /// Those of a pool, and when they were read.
    known: BoundedMap<PlacementPool, (Timestamp, Vec<Server>)>,
    /// When the index, read to its end, showed no place for a mode.
    full: BoundedMap<(PlacementPool, GameMode), Timestamp>,
    /// When creations of this instance failed at a server that others had chosen, too.
    failures: BoundedMap<PlacementPool, VecDeque<Timestamp>>,
}

impl Servers {
    pub(super) fn new(store: Store, ambient: Ambient, age_max: Duration) -> Self {
        let (known, full, failures) = (BoundedMap::default(), BoundedMap::default(), BoundedMap::default());
        Self { store, ambient, age_max, known, full, failures }
    }

    /// The fullest server with a place that `fits`, from memory while it has one, else from the index; one of
    /// the fullest while creations conflict there, and any while the pool `is_busy`.
    pub(super) async fn choose(
        &self,
        new: &NewLobby,
        placing: Placing,
        (is_busy, now): (bool, Timestamp),
        fits: impl Fn(&Server) -> bool,
        trace: &Trace,
    ) -> Result<Option<Server>, Error> {
        let placement = new.placement();
        // While busy, any server: all creations would conflict at the fullest, and it refuses them once it is
        // full. The lobbies of a burst go to few servers in turn.
        let is_in_turn = placing.is_promised() && self.count(&placement, &fits) <= SERVERS_IN_TURN_MAX;
        let spread = if is_busy && !is_in_turn { SERVERS_MAX } else { self.spread(&placement, now) };
        let pick = placing.nth + self.ambient.below(spread);
        let is_fresh = |server: &Server| fits(server) && server.has_fresh_lease(now);
        if let Some(server) = self.nth_fullest(&placement, pick, self.age_max, now, is_fresh) {
            return Ok(Some(server));
        }
        if placing.without_server_at.is_none() {
            self.learn(&placement, &new.pool.game_mode, Some(trace)).await?;
        }
        Ok(self.nth_fullest(&placement, pick, Duration::MAX, now, fits))
    }

    /// Reads the servers that lobbies such as the `new` one can be placed on, where this instance knows none.
    /// Returns when, if it read that none of them has a place: just now, or [a moment](A_MOMENT) ago where
    /// one can be requested instead. The creation reads them if that fails.
    pub(super) async fn meet(&self, new: &NewLobby, trace: &Trace) -> Option<Timestamp> {
        let (placement, mode, now) = (new.placement(), &new.pool.game_mode, self.ambient.now());
        if self.are_known(&placement, now) {
            let full_at = self.full.with(&(placement, mode.clone()), |at| *at);
            return full_at.filter(|at| new.launch.is_some() && now.since(*at) < A_MOMENT);
        }
        let has_place = self.learn(&placement, mode, Some(trace)).await;
        has_place.is_ok_and(|has_place| !has_place).then_some(now)
    }

    /// The same in any case; returns whether one has a place. A `trace` gets those that are silent.
    pub(super) async fn learn(
        &self,
        placement: &PlacementPool,
        mode: &GameMode,
        trace: Option<&Trace>,
    ) -> Result<bool, Error> {
        let now = self.ambient.now();
        let (servers, silent) = self.store.servers_with_places(placement, mode, now).await?;
        let has_place = servers.iter().any(|server| server.fits(mode, now));
        if !has_place {
            self.full.insert((placement.clone(), mode.clone()), now, now);
        }
        self.remember(placement, servers, now);
        let over = silent.iter().filter(|server| server.used > 0 && server.is_long_silent(now));
        try_join_all(over.take(SERVERS_ENDED_MAX).map(|server| self.end_lobbies_of_silent(server))).await?;
        if let Some(trace) = trace {
            trace.silent_servers(&silent);
        }
        Ok(has_place)
    }

    /// Whether a server has a place for a `new` lobby. One query at most, none where this instance knows a
    /// place.
    pub(super) async fn has_place(&self, new: &NewLobby, trace: &Trace) -> Result<bool, Error> {
        let (placement, mode, now) = (new.placement(), &new.pool.game_mode, self.ambient.now());
        let has_place = |server: &Server| server.fits(mode, now) && server.has_fresh_lease(now);
        if self.are_known(&placement, now) && self.count(&placement, has_place) > 0 {
            return Ok(true);
        }
        Ok(!self.were_read(&placement, LEARNT_AGE_MAX, now)
            && self.learn(&placement, mode, Some(trace)).await?)
    }

    /// Ends some lobbies of a long-silent server. Once the last has ended, the server costs nothing more
    /// (I14).
    async fn end_lobbies_of_silent(&self, server: &Server) -> Result<(), Error> {
        let page = self.store.lobbies_of_server(&server.server, None, LOBBIES_ENDED_MAX).await?;
        for lobby in self.store.lobbies(&page.lobby_ids).await? {
            match self.store.end_lobby(&lobby, EndCause::ServerDead, &self.ambient).await {
                // Its server sent a heartbeat, or another request ends it.
                Ok(_) | Err(Error::Contention) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn were_read(&self, pool: &PlacementPool, age_max: Duration, now: Timestamp) -> bool {
        self.known.with(pool, |(read_at, _)| now.since(*read_at) < age_max).unwrap_or(false)
    }

    /// Whether the servers of `pool` are known well enough to place a lobby.
    pub(super) fn are_known(&self, pool: &PlacementPool, now: Timestamp) -> bool {
        self.were_read(pool, self.age_max, now)
    }

    /// How many servers of `pool` that `fits` are known.
    pub(super) fn count(&self, pool: &PlacementPool, fits: impl Fn(&Server) -> bool) -> u32 {
        let fitting =
            |(_, servers): &mut (_, Vec<Server>)| servers.iter().filter(|server| fits(server)).count();
        u32::try_from(self.known.with(pool, fitting).unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Up to `count` of the known servers of `pool`.
    pub(super) fn some(&self, pool: &PlacementPool, count: usize) -> Vec<Server> {
        let first = |(_, servers): &mut (_, Vec<Server>)| servers.iter().take(count).cloned().collect();
        self.known.with(pool, first).unwrap_or_default()
    }

    /// The `pick`-th fullest known server that `fits`, counted round and round, if read less than `age_max`
    /// ago.
    ///
    /// Of equally full ones those with a part of the cap left come first: they cost no write of the ledger.
    fn nth_fullest(
        &self,
        pool: &PlacementPool,
        pick: u64,
        age_max: Duration,
        now: Timestamp,
        fits: impl Fn(&Server) -> bool,
    ) -> Option<Server> {
        let choose = |(read_at, servers): &mut (Timestamp, Vec<Server>)| {
            if now.since(*read_at) >= age_max {
                return None;
            }
            nth_fullest(servers.iter().filter(|server| fits(server)).collect(), pick)
        };
        self.known.with(pool, choose).flatten()
    }

    /// Notes that a creation conflicted with another at a server of `pool`, or found it full.
    pub(super) fn note_failure(&self, pool: &PlacementPool, now: Timestamp) {
        self.failures.with_new(pool.clone(), now, |failures| {
            drop_old(failures, now);
            if failures.len() < FAILURES_MAX {
                failures.push_back(now);
            }
        });
    }

    /// Over how many of the fullest servers to spread creations: one, times four for each failure within the
    /// last second.
    fn spread(&self, pool: &PlacementPool, now: Timestamp) -> u64 {
        let spread = |failures: &mut VecDeque<_>| {
            drop_old(failures, now);
            1 << (2 * failures.len())
        };
        self.failures.with(pool, spread).unwrap_or(1)
    }

    pub(super) fn remember(&self, pool: &PlacementPool, servers: Vec<Server>, now: Timestamp) {
        self.known.insert(pool.clone(), now, (now, servers));
    }

    pub(super) fn forget(&self, pool: &PlacementPool) {
        self.known.remove(pool);
    }

    /// Forgets the servers of whatever build on which lobbies of `pool` can be placed.
    pub(super) fn forget_all_in(&self, pool: &Pool) {
        let is_there = |known: &PlacementPool| {
            known.namespace_id == pool.namespace_id && known.region_id == pool.region_id
        };
        self.known.remove_all(is_there);
    }

    /// Notes a server that was just seen, beside those that are known.
    pub(super) fn meet_one(&self, seen: Server, now: Timestamp) {
        let pool = seen.pool();
        if !self.are_known(&pool, now) {
            self.remember(&pool, Vec::new(), now);
        }
        self.correct(&seen.clone(), Some(seen));
    }

    /// Notes that `known` had no place, and is now `seen`; `None` when it is gone. What was read a second ago
    /// is forgotten: where one server has filled since, others have.
    pub(super) fn note_no_place(&self, known: &Server, seen: Option<Server>, now: Timestamp) {
        self.note_failure(&known.pool(), now);
        if self.were_read(&known.pool(), LEARNT_AGE_MAX, now) {
            self.correct(known, seen);
        } else {
            self.forget(&known.pool());
        }
    }

    /// Replaces what is known of one server by `corrected`; `None` when it is gone.
    pub(super) fn correct(&self, known: &Server, corrected: Option<Server>) {
        self.known.with(&known.pool(), |(_, servers)| {
            servers.retain(|server| server.server != known.server);
            servers.extend(corrected);
        });
    }
}

fn nth_fullest(mut fitting: Vec<&Server>, pick: u64) -> Option<Server> {
    let free_places =
        |server: &&Server| (server.capacity - server.used, server.allotted_left() == 0, server.ranked_at);
    if pick > 0 {
        // Concurrent creations conflict at the ledger, unless their servers have a part of the cap left.
        if fitting.iter().filter(|server| server.allotted_left() > 0).count() >= SERVERS_ALLOTTED_MIN {
            fitting.retain(|server| server.allotted_left() > 0);
        }
        fitting.sort_by_key(free_places);
        let nth = pick.checked_rem(fitting.len() as u64)?;
        return fitting.get(usize::try_from(nth).ok()?).copied().cloned();
    }
    fitting.into_iter().min_by_key(free_places).cloned()
}

//! Game servers with places.

use std::{collections::VecDeque, time::Duration};

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    matchmaking::limits::{LEARNT_AGE_MAX, drop_old},
    models::server::{PlacementPool, Server},
};

/// The most conflicts that are counted: creations spread over at most 2^10 servers.
const SPREAD_CONFLICTS_MAX: usize = 10;
/// Servers with a part of the cap left from which spread creations use only these.
const SERVERS_ALLOTTED_MIN: usize = 8;

/// What an instance knows of servers.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Servers {
    /// Those of a pool, and when they were read.
    known: BoundedMap<PlacementPool, (Timestamp, Vec<Server>)>,
    /// When creations of this instance conflicted at a server.
    conflicts: BoundedMap<PlacementPool, VecDeque<Timestamp>>,
}

impl Servers {
    /// Whether the servers of `pool` were read less than `age_max` ago.
    pub(in crate::matchmaking) fn are_known(
        &self,
        pool: &PlacementPool,
        age_max: Duration,
        now: Timestamp,
    ) -> bool {
        self.known.with(pool, |(read_at, _)| now.since(*read_at) < age_max).unwrap_or(false)
    }

    /// How many servers of `pool` that `fits` are known.
    pub(in crate::matchmaking) fn count(&self, pool: &PlacementPool, fits: impl Fn(&Server) -> bool) -> u32 {
        let fitting =
            |(_, servers): &mut (_, Vec<Server>)| servers.iter().filter(|server| fits(server)).count();
        u32::try_from(self.known.with(pool, fitting).unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Up to `count` of the known servers of `pool`.
    pub(in crate::matchmaking) fn some(&self, pool: &PlacementPool, count: usize) -> Vec<Server> {
        let first = |(_, servers): &mut (_, Vec<Server>)| servers.iter().take(count).cloned().collect();
        self.known.with(pool, first).unwrap_or_default()
    }

    /// The `pick`-th fullest known server that `fits`, counted round and round, if read less than `age_max`
    /// ago.
    ///
    /// Of equally full ones those with a part of the cap left come first: they cost no write of the ledger.
    pub(in crate::matchmaking) fn nth_fullest(
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

    /// Notes that a creation conflicted with another at a server of `pool`.
    pub(in crate::matchmaking) fn note_conflict(&self, pool: &PlacementPool, now: Timestamp) {
        self.conflicts.with_new(pool.clone(), now, |conflicts| {
            drop_old(conflicts, now);
            if conflicts.len() < SPREAD_CONFLICTS_MAX {
                conflicts.push_back(now);
            }
        });
    }

    /// Over how many of the fullest servers to spread creations: one, doubled by each conflict within the
    /// last second.
    pub(in crate::matchmaking) fn spread(&self, pool: &PlacementPool, now: Timestamp) -> u64 {
        let spread = |conflicts: &mut VecDeque<_>| {
            drop_old(conflicts, now);
            1 << conflicts.len()
        };
        self.conflicts.with(pool, spread).unwrap_or(1)
    }

    pub(in crate::matchmaking) fn remember(
        &self,
        pool: &PlacementPool,
        servers: Vec<Server>,
        now: Timestamp,
    ) {
        self.known.insert(pool.clone(), now, (now, servers));
    }

    pub(in crate::matchmaking) fn forget(&self, pool: &PlacementPool) {
        self.known.remove(pool);
    }

    /// Notes that `known` had no place, and is now `seen`; `None` when it is gone. What was read a second ago
    /// is forgotten: where one server has filled since, others have.
    pub(in crate::matchmaking) fn note_no_place(&self, known: &Server, seen: Option<Server>, now: Timestamp) {
        if self.are_known(&known.pool(), LEARNT_AGE_MAX, now) {
            self.correct(known, seen);
        } else {
            self.forget(&known.pool());
        }
    }

    /// Replaces what is known of one server by `corrected`; `None` when it is gone.
    pub(in crate::matchmaking) fn correct(&self, known: &Server, corrected: Option<Server>) {
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

//! Pools: how many finds they have, and lobbies that should have seats.

use std::{collections::VecDeque, time::Duration};

use crate::{
    base::{
        ambient::{Ambient, Timestamp},
        cache::Kept,
    },
    matchmaking::{
        contention::Contention,
        limits::{COMPARED_MAX, LEARNT_AGE_MAX, drop_old},
        memory::shards::{Sharding, Shards},
        search::Claimed,
    },
    models::{ids::LobbyId, lobby::Lobby, pool::Pool},
    store::lobbies::{Candidate, Hiding},
};

/// Candidates within a second found full by finds that are a sign of others.
const LOST_SEATS_MAX: usize = 2;
/// Lobbies read ahead longer ago are dropped once one of them refused a find.
const READ_AGE_MAX: Duration = Duration::from_millis(250);
/// The same in a pool with shards, where more instances take their seats.
const READ_AGE_MAX_IN_SHARDS: Duration = Duration::from_millis(65);

/// What an instance knows of pools.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Pools(Kept<Pool, KnownPool>);

#[derive(Debug, Default)]
struct KnownPool {
    /// When finds of this instance began.
    finds: VecDeque<Timestamp>,
    /// When the last sign of others' finds expires.
    busy_until: Timestamp,
    /// When lobbies that a look showed turned out to be full.
    lost_seats: VecDeque<Timestamp>,
    /// The lobby in which the last seat was taken.
    lobby: Option<KnownLobby>,
    /// Lobbies with a seat that the last look ahead read, and when.
    read: (Vec<Lobby>, Timestamp),
    /// The last candidate that it showed, when more follow in its shard: where the next such look begins.
    looked_to: Option<Candidate>,
    shards: Shards,
}

/// A lobby, and the seats that this instance knows to be taken there.
#[derive(Debug)]
struct KnownLobby {
    lobby: Lobby,
    learnt_at: Timestamp,
}

impl KnownLobby {
    /// Whether it should have a seat.
    fn has_seat(&self, now: Timestamp) -> bool {
        self.lobby.taken < self.lobby.max_players && now.since(self.learnt_at) < LEARNT_AGE_MAX
    }

    fn hiding(&self, now: Timestamp) -> Hiding {
        let Lobby { taken, pool: Pool { shard, .. }, .. } = self.lobby;
        let lapse = self.lobby.last_seat_hides_until(self.learnt_at, now);
        lapse.map_or(Hiding::No, |lapse| Hiding::IfLast { taken, lapse, shard })
    }
}

impl KnownPool {
    fn finds(&mut self, now: Timestamp) -> usize {
        drop_old(&mut self.finds, now);
        self.finds.len()
    }

    fn contention(&mut self, now: Timestamp) -> Contention {
        Contention::of(self.finds(now), self.busy_until > now)
    }

    fn note_busy(&mut self, now: Timestamp) {
        self.busy_until = now + LEARNT_AGE_MAX;
    }

    fn known(&mut self, id: &LobbyId) -> Option<&mut KnownLobby> {
        self.lobby.as_mut().filter(|known| known.lobby.lobby_id == *id)
    }
}

impl Pools {
    /// Notes a find that begins in `pool`, and returns its contention.
    pub(in crate::matchmaking) fn begin_find(&self, pool: &Pool, now: Timestamp) -> Contention {
        self.0.with_new(pool.whole(), now, |known| {
            known.finds.push_back(now);
            known.contention(now)
        })
    }

    /// The contention of a find in `pool`.
    pub(in crate::matchmaking) fn contention(&self, pool: &Pool, now: Timestamp) -> Contention {
        self.0.with(&pool.whole(), |known| known.contention(now)).unwrap_or(Contention::Quiet)
    }

    /// Notes a sign of others' finds in `pool`.
    pub(in crate::matchmaking) fn note_busy(&self, pool: &Pool, now: Timestamp) {
        self.0.with_new(pool.whole(), now, |known| known.note_busy(now));
    }

    /// Finds of this instance in `pool` within the last second.
    pub(in crate::matchmaking) fn finds_in_a_second(&self, pool: &Pool, now: Timestamp) -> usize {
        self.0.with(&pool.whole(), |known| known.finds(now)).unwrap_or(0)
    }

    /// Whether this instance is likely to fill a lobby of `max_players` within two seconds.
    pub(in crate::matchmaking) fn fills_alone(&self, pool: &Pool, max_players: u32, now: Timestamp) -> bool {
        let finds = self.finds_in_a_second(pool, now);
        Contention::of(finds, false) == Contention::Busy
            && finds * 2 >= usize::try_from(max_players).unwrap_or(usize::MAX)
    }

    /// The lobby used last, to try without a look: if it was used within the last second and should have a
    /// seat.
    pub(in crate::matchmaking) fn last_used(&self, pool: &Pool, now: Timestamp) -> Option<Claimed> {
        let claim = |known: &mut KnownPool| {
            let known = known.lobby.as_mut().filter(|known| known.has_seat(now))?;
            let hiding = known.hiding(now);
            // For this find.
            known.lobby.taken += 1;
            Some(Claimed { pool: known.lobby.pool.clone(), lobby_id: known.lobby.lobby_id.clone(), hiding })
        };
        self.0.with(&pool.whole(), claim).flatten()
    }

    /// How to take a seat in a lobby that was looked up: if this instance last saw one seat left, however
    /// long ago, that seat is likely to be the last. A wrong guess costs a write, a right one saves one.
    pub(in crate::matchmaking) fn hiding(&self, pool: &Pool, id: &LobbyId, now: Timestamp) -> Hiding {
        let hiding = |known: &mut KnownPool| known.known(id).map(|lobby| lobby.hiding(now));
        self.0.with(&pool.whole(), hiding).flatten().unwrap_or(Hiding::No)
    }

    /// Remembers a lobby as a seat just taken showed it, unless another lobby still has seats for this
    /// instance, or its own seats are promised to other finds.
    pub(in crate::matchmaking) fn remember_lobby(&self, lobby: &Lobby, is_promised: bool, now: Timestamp) {
        self.0.with_new(lobby.pool.whole(), now, |known| {
            // Other finds of this instance may have been sent there.
            let taken = known.known(&lobby.lobby_id).map(|known| known.lobby.taken.max(lobby.taken));
            let has_other = || known.lobby.as_ref().is_some_and(|known| known.has_seat(now));
            if taken.is_none() && (is_promised || lobby.taken >= lobby.max_players || has_other()) {
                return;
            }
            let taken = taken.unwrap_or(lobby.taken);
            known.lobby = Some(KnownLobby { lobby: Lobby { taken, ..lobby.clone() }, learnt_at: now });
        });
    }

    pub(in crate::matchmaking) fn forget_lobby(&self, pool: &Pool, id: &LobbyId) {
        self.0.with(&pool.whole(), |known| known.lobby.take_if(|known| known.lobby.lobby_id == *id));
    }

    /// Notes that a lobby that a look at `pool` showed had no seat for the find.
    pub(in crate::matchmaking) fn note_lost_seat(&self, pool: &Pool, now: Timestamp) {
        self.0.with_new(pool.whole(), now, |known| {
            drop_old(&mut known.lost_seats, now);
            known.lost_seats.push_back(now);
            if known.lost_seats.len() >= LOST_SEATS_MAX {
                known.lost_seats.clear();
                known.note_busy(now);
            }
        });
    }

    /// The shard of the busy `pool` to look into and the candidate to begin after: where the last such look
    /// ended, so that instances spread over the index. Otherwise a random known shard, from its beginning.
    pub(in crate::matchmaking) fn next_look(
        &self,
        pool: &Pool,
        ambient: &Ambient,
        now: Timestamp,
    ) -> (u8, Option<Candidate>) {
        let next = |known: &mut KnownPool| match known.looked_to.take() {
            Some(last) => (last.pool.shard, Some(last)),
            None => (u8::try_from(ambient.below(known.shards.known(now).into())).unwrap_or(0), None),
        };
        self.0.with(&pool.whole(), next).unwrap_or((0, None))
    }

    /// Notes that a look ahead showed `shown` candidates, and where the next one begins.
    pub(in crate::matchmaking) fn note_shown(
        &self,
        pool: &Pool,
        shown: usize,
        looked_to: Option<Candidate>,
        now: Timestamp,
    ) {
        self.0.with_new(pool.whole(), now, |known| {
            // A pool with so many candidates still needs its shards.
            let shards = usize::from(known.shards.known(now));
            if shards > 1 && shown * shards > COMPARED_MAX {
                known.note_busy(now);
            }
            known.looked_to = looked_to;
        });
    }

    /// Keeps lobbies as they were read, for the next finds.
    pub(in crate::matchmaking) fn keep_lobbies(&self, pool: &Pool, lobbies: Vec<Lobby>, now: Timestamp) {
        self.0.with_new(pool.whole(), now, |known| known.read = (lobbies, now));
    }

    /// Removes and returns a random one of the kept lobbies, with the time of its read.
    pub(in crate::matchmaking) fn draw_lobby(
        &self,
        pool: &Pool,
        ambient: &Ambient,
        now: Timestamp,
    ) -> Option<(Lobby, Timestamp)> {
        let draw = |known: &mut KnownPool| {
            let (lobbies, read_at) = &mut known.read;
            if now.since(*read_at) >= LEARNT_AGE_MAX {
                return None;
            }
            Some((ambient.draw(lobbies)?, *read_at))
        };
        self.0.with(&pool.whole(), draw).flatten()
    }

    /// Drops the kept lobbies, unless they were just read: one of them refused a find.
    pub(in crate::matchmaking) fn forget_older_lobbies(&self, pool: &Pool, now: Timestamp) {
        self.0.with(&pool.whole(), |known| {
            let age_max = if known.shards.known(now) > 1 { READ_AGE_MAX_IN_SHARDS } else { READ_AGE_MAX };
            if now.since(known.read.1) >= age_max {
                known.read.0.clear();
            }
        });
    }

    /// Notes that a look saw the sign of `shards` shards of `pool`, and showed `shown` candidates.
    pub(in crate::matchmaking) fn note_shards(&self, pool: &Pool, shards: u8, shown: usize, now: Timestamp) {
        let note = |known: &mut KnownPool| {
            known.shards.note_seen(shards, now);
            if shards > 1 && shown > COMPARED_MAX {
                known.note_busy(now);
            }
        };
        if shards == 1 {
            self.0.with(&pool.whole(), note);
        } else {
            self.0.with_new(pool.whole(), now, note);
        }
    }

    /// Notes that the index was too slow for a lobby of `pool`, or will be: it needs more shards.
    pub(in crate::matchmaking) fn note_slow_index(&self, pool: &Pool, now: Timestamp) {
        self.0.with_new(pool.whole(), now, |known| known.shards.note_slow_index(now));
    }

    /// What to do about the shards of `pool`.
    pub(in crate::matchmaking) fn sharding(&self, pool: &Pool, now: Timestamp) -> Sharding {
        self.0.with(&pool.whole(), |known| known.shards.due(now)).unwrap_or(Sharding::Unneeded)
    }

    /// Notes that this instance wrote the sign of `shards` shards of `pool`.
    pub(in crate::matchmaking) fn remember_shards(&self, pool: &Pool, shards: u8, now: Timestamp) {
        self.0.with_new(pool.whole(), now, |known| known.shards.note_signed(shards, now));
    }

    /// Whether to check if the shards of `pool` are still needed.
    pub(in crate::matchmaking) fn is_sweep_due(&self, pool: &Pool, now: Timestamp) -> bool {
        self.0.with_new(pool.whole(), now, |known| known.shards.is_sweep_due(now))
    }
}

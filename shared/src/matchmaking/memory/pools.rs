//! Pools: how many finds they have, and lobbies that should have seats. Finds with the same tags share what
//! an instance learnt of a pool.

use std::{collections::VecDeque, time::Duration};

use crate::{
    base::{
        ambient::{Ambient, Timestamp},
        cache::BoundedMap,
    },
    matchmaking::{
        contention::Contention,
        limits::{COMPARED_MAX, LEARNT_AGE_MAX, ROOMY, drop_old},
    },
    models::{
        availability::Availability, ids::LobbyId, lobby::Lobby, pool::Pool, seats::Seats,
        tag_digests::TagDigests,
    },
    rules::criteria::SearchedPool,
    store::{lobbies::Candidate, seats::Hiding},
};

/// Candidates within a second found full by finds that are a sign of others.
const LOST_SEATS_MAX: usize = 2;
/// Lobbies read ahead longer ago are dropped once one of them refused a find.
const READ_AGE_MAX: Duration = Duration::from_millis(250);
/// The same in a pool with shards, where more instances take their seats.
const READ_AGE_MAX_IN_SHARDS: Duration = Duration::from_millis(65);
/// How long finds of parties believe that no lobby has room for them: in small lobbies, a quarter create one.
const NO_ROOM_FOR: Duration = Duration::from_millis(250);
/// Lobbies of a pool that an instance remembers, besides those that it reads ahead.
const USED_MAX: usize = 4;

/// Sets of tags for which an instance remembers pools. Players choose tags, so these do not displace what is
/// known without tags.
const TAGGED_MAX: usize = 256;

/// What an instance knows of pools, for each by the tags that a find asks for.
#[derive(Debug)]
pub(in crate::matchmaking) struct Pools {
    untagged: BoundedMap<Pool, KnownPool>,
    tagged: BoundedMap<(Pool, TagDigests), KnownPool>,
}

impl Default for Pools {
    fn default() -> Self {
        Self { untagged: BoundedMap::default(), tagged: BoundedMap::new(TAGGED_MAX) }
    }
}

#[derive(Debug, Default)]
struct KnownPool {
    /// When finds of this instance began.
    finds: VecDeque<Timestamp>,
    /// When the last sign of others' finds expires.
    busy_until: Timestamp,
    /// The same of lost seats in a pool with shards, in which a look sees only one.
    spread_until: Timestamp,
    /// Until when its head is thought to take no more writes.
    hot_until: Timestamp,
    /// When lobbies that a look showed turned out to be full.
    lost_seats: VecDeque<Timestamp>,
    /// Lobbies in which this instance took seats, the last one at the end.
    used: Vec<KnownLobby>,
    /// Other lobbies with a seat that the last look ahead read.
    read: Vec<KnownLobby>,
    /// The last candidate that the last look ahead showed, when more follow in its shard: where the next one
    /// begins.
    looked_to: Option<Candidate>,
    /// When looks ahead led to no room for a party, and how large that was.
    no_room: Option<(Timestamp, u32)>,
}

/// A lobby, and the seats that this instance knows to be taken there.
#[derive(Clone, Debug)]
pub(in crate::matchmaking) struct KnownLobby {
    pub(in crate::matchmaking) lobby: Lobby,
    pub(in crate::matchmaking) learnt_at: Timestamp,
}

/// Lobbies out of others' sight come first, since nobody else fills them; then the fullest, and the older of
/// equally full ones.
type Rank = (bool, u32, Timestamp);

impl KnownLobby {
    /// Its seats that should be free, if those are enough for so many `seats`, while it was seen less than a
    /// second ago and not crowded.
    fn free_seats(&self, seats: u32, now: Timestamp) -> Option<u32> {
        let free = self.lobby.capacity_for_finds(seats).saturating_sub(self.lobby.taken);
        (free >= seats && self.is_fresh(now) && !self.lobby.is_crowded(self.learnt_at)).then_some(free)
    }

    fn has_room(&self, seats: u32, now: Timestamp) -> bool {
        !matches!(self.lobby.availability_for_find(seats, now), Availability::Refused(_))
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.learnt_at) < LEARNT_AGE_MAX
    }

    /// Its place among those that should have so many `seats`.
    fn rank(&self, seats: u32, now: Timestamp) -> Option<Rank> {
        let is_in_sight = self.lobby.joinable_from.is_some_and(|from| from <= now);
        Some((is_in_sight, self.free_seats(seats, now)?, self.lobby.created_at))
    }

    /// How to take seats there.
    pub(in crate::matchmaking) fn hiding(&self, seats: &Seats, now: Timestamp) -> Hiding {
        let taken = self.lobby.taken;
        if let Some(lapse) = self.lobby.last_seats_hide_until(seats.count(), self.learnt_at, now) {
            return Hiding::IfLast { taken, lapse };
        }
        let is_room_used_up =
            self.lobby.room.is_some() && self.lobby.room_with(taken + seats.count()).is_none();
        if is_room_used_up { Hiding::FromParties { taken } } else { Hiding::No }
    }
}

impl KnownPool {
    fn finds(&mut self, now: Timestamp) -> usize {
        drop_old(&mut self.finds, now);
        self.finds.len()
    }

    fn contention(&mut self, now: Timestamp) -> Contention {
        Contention::of(self.finds(now), self.busy_until.max(self.spread_until) > now)
    }

    fn note_busy(&mut self, now: Timestamp) {
        self.busy_until = now + LEARNT_AGE_MAX;
    }

    /// The first of the lobbies used that should have so many `seats`, and its rank.
    fn first_used(&mut self, seats: u32, now: Timestamp) -> Option<(Rank, &mut KnownLobby)> {
        let known = self.used.iter_mut().filter_map(|known| Some((known.rank(seats, now)?, known)));
        known.min_by_key(|(rank, _)| *rank)
    }
}

impl Pools {
    fn with<R>(&self, searched: &SearchedPool, change: impl FnOnce(&mut KnownPool) -> R) -> Option<R> {
        if searched.tag_digests.is_empty() {
            self.untagged.with(&searched.pool, change)
        } else {
            self.tagged.with(&tagged_key(searched), change)
        }
    }

    fn with_new<R>(
        &self,
        searched: &SearchedPool,
        now: Timestamp,
        change: impl FnOnce(&mut KnownPool) -> R,
    ) -> R {
        if searched.tag_digests.is_empty() {
            self.untagged.with_new(searched.pool.clone(), now, change)
        } else {
            self.tagged.with_new(tagged_key(searched), now, change)
        }
    }

    /// Notes a find that begins in `pools`.
    pub(in crate::matchmaking) fn begin_find(&self, pools: &[SearchedPool], now: Timestamp) {
        for searched in pools {
            self.with_new(searched, now, |known| known.finds.push_back(now));
        }
    }

    /// The contention of a find in `pools`: the most that one of them has.
    pub(in crate::matchmaking) fn contention(&self, pools: &[SearchedPool], now: Timestamp) -> Contention {
        let contention = |searched| self.with(searched, |known| known.contention(now));
        pools.iter().filter_map(contention).max().unwrap_or(Contention::Quiet)
    }

    /// Whether finds in `pools` create after a look at a part of them.
    pub(in crate::matchmaking) fn create_early(&self, pools: &[SearchedPool], now: Timestamp) -> bool {
        let creates = |known: &mut KnownPool| {
            Contention::of(known.finds(now), known.busy_until > now) == Contention::Busy
        };
        pools.iter().any(|searched| self.with(searched, creates).unwrap_or(false))
    }

    /// Notes a sign of others' finds in a pool.
    pub(in crate::matchmaking) fn note_busy(&self, searched: &SearchedPool, now: Timestamp) {
        self.with_new(searched, now, |known| known.note_busy(now));
    }

    /// Notes that a pool's head took no more writes, which is a sign of others' finds, too.
    pub(in crate::matchmaking) fn note_hot_head(&self, searched: &SearchedPool, now: Timestamp) {
        self.with_new(searched, now, |known| {
            known.note_busy(now);
            known.hot_until = known.busy_until;
        });
    }

    /// Whether it took none within the last second.
    pub(in crate::matchmaking) fn has_hot_head(&self, searched: &SearchedPool, now: Timestamp) -> bool {
        self.with(searched, |known| known.hot_until > now).unwrap_or(false)
    }

    /// Finds of this instance in a pool within the last second.
    pub(in crate::matchmaking) fn finds_in_a_second(&self, searched: &SearchedPool, now: Timestamp) -> usize {
        self.with(searched, |known| known.finds(now)).unwrap_or(0)
    }

    /// Whether this instance alone fills a lobby of `max_players`, which is small, within half a second.
    pub(in crate::matchmaking) fn fills_alone(
        &self,
        searched: &SearchedPool,
        max_players: u32,
        now: Timestamp,
    ) -> bool {
        let finds = self.finds_in_a_second(searched, now);
        max_players <= ROOMY && Contention::of(finds, false) == Contention::Busy
    }

    /// Whether a find may create a lobby of `max_players` without an election: a small one in a busy pool.
    pub(in crate::matchmaking) fn creates_alone(
        &self,
        searched: &SearchedPool,
        max_players: u32,
        now: Timestamp,
    ) -> bool {
        let is_busy = |known: &mut KnownPool| known.contention(now) == Contention::Busy;
        max_players <= ROOMY && self.with(searched, is_busy).unwrap_or(false)
    }

    /// The fullest lobby of `pools` in which this instance took a seat within the last second and which
    /// should have so many `seats`, to try without a look.
    pub(in crate::matchmaking) fn use_known(
        &self,
        pools: &[SearchedPool],
        seats: u32,
        now: Timestamp,
    ) -> Option<KnownLobby> {
        let rank = |searched| {
            let rank = |known: &mut KnownPool| known.first_used(seats, now).map(|(rank, _)| rank);
            Some((self.with(searched, rank).flatten()?, searched))
        };
        let (_, searched) = pools.iter().filter_map(rank).min_by_key(|(rank, _)| *rank)?;
        let take = |known: &mut KnownPool| {
            let (_, known) = known.first_used(seats, now)?;
            let before = known.clone();
            // For this find.
            known.lobby.taken += seats;
            Some(before)
        };
        self.with(searched, take).flatten()
    }

    /// How to take a seat in a lobby that was looked up: if this instance last saw one seat left, however
    /// long ago, that seat is likely to be the last. A wrong guess costs a write, a right one saves one.
    pub(in crate::matchmaking) fn hiding(
        &self,
        searched: &SearchedPool,
        id: &LobbyId,
        seats: &Seats,
        now: Timestamp,
    ) -> Hiding {
        let hiding = |known: &mut KnownPool| {
            Some(known.used.iter().find(|known| known.lobby.lobby_id == *id)?.hiding(seats, now))
        };
        self.with(searched, hiding).flatten().unwrap_or(Hiding::No)
    }

    /// Remembers a lobby as a find of so many `seats` showed it that just took them, unless its other seats
    /// are promised to other finds, or others see it and this instance has another for such a find.
    pub(in crate::matchmaking) fn remember_lobby(
        &self,
        searched: &SearchedPool,
        (lobby, seats): (&Lobby, u32),
        is_promised: bool,
        now: Timestamp,
    ) {
        self.with_new(searched, now, |known| {
            let before = known.used.extract_if(.., |known| known.lobby.lobby_id == lobby.lobby_id).last();
            let is_in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
            let is_unwanted = is_promised || (is_in_sight && known.first_used(seats, now).is_some());
            if before.is_none() && is_unwanted {
                return;
            }
            // Other finds of this instance may have been sent there.
            let taken = before.map_or(0, |known| known.lobby.taken).max(lobby.taken);
            if known.used.len() == USED_MAX {
                known.used.remove(0);
            }
            known.used.push(KnownLobby { lobby: Lobby { taken, ..lobby.clone() }, learnt_at: now });
        });
    }

    /// Corrects what is remembered of a lobby, which was just seen so.
    pub(in crate::matchmaking) fn correct_lobby(
        &self,
        searched: &SearchedPool,
        lobby: &Lobby,
        now: Timestamp,
    ) {
        self.with(searched, |known| {
            for known in known.used.iter_mut().filter(|known| known.lobby.lobby_id == lobby.lobby_id) {
                *known = KnownLobby { lobby: lobby.clone(), learnt_at: now };
            }
        });
    }

    pub(in crate::matchmaking) fn forget_lobby(&self, searched: &SearchedPool, id: &LobbyId) {
        self.with(searched, |known| known.used.retain(|known| known.lobby.lobby_id != *id));
    }

    /// Notes that a lobby that a look at a pool showed had no seat for the find.
    pub(in crate::matchmaking) fn note_lost_seat(&self, searched: &SearchedPool, now: Timestamp) {
        self.with_new(searched, now, |known| {
            drop_old(&mut known.lost_seats, now);
            known.lost_seats.push_back(now);
            if known.lost_seats.len() >= LOST_SEATS_MAX {
                known.lost_seats.clear();
                if searched.shards > 1 {
                    known.spread_until = now + LEARNT_AGE_MAX;
                } else {
                    known.note_busy(now);
                }
            }
        });
    }

    /// The shard of a pool to look into for so many `seats`, and the candidate to begin after: where the last
    /// look for one seat ended, so that instances spread over the index. Otherwise any shard, from its
    /// beginning.
    pub(in crate::matchmaking) fn next_look(
        &self,
        searched: &SearchedPool,
        seats: u32,
        ambient: &Ambient,
    ) -> (u32, Option<Candidate>) {
        let next = |known: &mut KnownPool| {
            if let Some(last) = known.looked_to.take_if(|_| seats == 1) {
                return (last.pool.shard, Some(last));
            }
            let drawn = ambient.below(searched.shards.into());
            (u32::try_from(drawn).unwrap_or(0), None)
        };
        self.with(searched, next).unwrap_or_default()
    }

    /// Notes that a look into all shards of a pool showed `shown` candidates: so many in a pool with several
    /// shards are a sign of many finds.
    pub(in crate::matchmaking) fn note_shown(&self, searched: &SearchedPool, shown: usize, now: Timestamp) {
        if searched.shards > 1 && shown > COMPARED_MAX {
            self.note_busy(searched, now);
        }
    }

    /// How many lobbies of a pool this instance used or read within the last second, and whether one of them
    /// has had so many free `seats` in sight for longer than `lag` (I9).
    pub(in crate::matchmaking) fn in_use(
        &self,
        searched: &SearchedPool,
        seats: u32,
        lag: Duration,
        now: Timestamp,
    ) -> (usize, bool) {
        let count = |known: &mut KnownPool| {
            let fresh = known.used.iter().chain(&known.read).filter(|known| known.is_fresh(now));
            let (mut in_use, mut is_one_open) = (0, false);
            for KnownLobby { lobby, .. } in fresh {
                let is_old = |from: Timestamp| from.max(lobby.vacated_at.unwrap_or(from)) + lag < now;
                in_use += 1;
                let is_roomy = lobby.taken + seats <= lobby.capacity_for_finds(seats);
                is_one_open |= is_roomy && lobby.joinable_from.is_some_and(is_old);
            }
            (in_use, is_one_open)
        };
        self.with(searched, count).unwrap_or_default()
    }

    /// Notes that looks into `pools` led to no room for a party of so many `seats`.
    pub(in crate::matchmaking) fn note_no_room(&self, pools: &[SearchedPool], seats: u32, now: Timestamp) {
        for searched in pools.iter().filter(|_| seats > 1) {
            self.with_new(searched, now, |known| known.no_room = Some((now, seats)));
        }
    }

    /// Whether they did a moment ago, for a party as large or smaller.
    pub(in crate::matchmaking) fn lacks_room(
        &self,
        pools: &[SearchedPool],
        seats: u32,
        now: Timestamp,
    ) -> bool {
        let is_known = |(at, wanted): (Timestamp, u32)| seats >= wanted && now.since(at) < NO_ROOM_FOR;
        let lacks = |searched| self.with(searched, |known| known.no_room.is_some_and(is_known));
        seats > 1 && pools.iter().all(|searched| lacks(searched).unwrap_or(false))
    }

    /// Notes where the next look into a pool begins.
    pub(in crate::matchmaking) fn note_looked_to(
        &self,
        searched: &SearchedPool,
        looked_to: Option<Candidate>,
        now: Timestamp,
    ) {
        self.with_new(searched, now, |known| known.looked_to = looked_to);
    }

    /// Keeps lobbies of a pool as they were read at `now`, for the next finds.
    pub(in crate::matchmaking) fn keep_lobbies(
        &self,
        searched: &SearchedPool,
        lobbies: Vec<Lobby>,
        now: Timestamp,
    ) {
        let read = lobbies.into_iter().map(|lobby| KnownLobby { lobby, learnt_at: now }).collect();
        self.with_new(searched, now, |known| known.read = read);
    }

    /// Removes and returns one of the kept lobbies of `pools` for so many `seats`: the fullest roomy one,
    /// else any; where the mode has parties, the fullest.
    pub(in crate::matchmaking) fn draw_lobby(
        &self,
        pools: &[SearchedPool],
        seats: u32,
        ambient: &Ambient,
        now: Timestamp,
    ) -> Option<KnownLobby> {
        let list = |searched| {
            let list = |known: &mut KnownPool| {
                // Also those whose free seats are lapsed ones.
                known.read.retain(|known| known.is_fresh(now));
                let has_room = |(_, known): &(usize, &KnownLobby)| seats == 1 || known.has_room(seats, now);
                let fitting = known.read.iter().enumerate().filter(has_room);
                let free = fitting.map(|(nth, known)| {
                    let is_of_parties = known.lobby.party_size_max.is_some();
                    (known.free_seats(seats, now).unwrap_or(0), is_of_parties, nth, searched)
                });
                free.collect::<Vec<_>>()
            };
            self.with(searched, list).unwrap_or_default()
        };
        let mut all: Vec<_> = pools.iter().flat_map(list).collect();
        let is_wanted = |(free, is_of_parties, ..): &(u32, bool, usize, &SearchedPool)| {
            *free > ROOMY || (*free > 0 && *is_of_parties)
        };
        let roomy = all.iter().copied().filter(is_wanted).min_by_key(|(free, ..)| *free);
        let (_, _, nth, searched) = roomy.or_else(|| ambient.draw(&mut all))?;
        let remove = |known: &mut KnownPool| (nth < known.read.len()).then(|| known.read.swap_remove(nth));
        self.with(searched, remove).flatten()
    }

    /// Drops the kept lobbies, unless they were just read: one of them refused a find.
    pub(in crate::matchmaking) fn forget_older_lobbies(&self, searched: &SearchedPool, now: Timestamp) {
        let age_max = if searched.shards > 1 { READ_AGE_MAX_IN_SHARDS } else { READ_AGE_MAX };
        self.with(searched, |known| known.read.retain(|known| now.since(known.learnt_at) < age_max));
    }
}

fn tagged_key(searched: &SearchedPool) -> (Pool, TagDigests) {
    (searched.pool.clone(), searched.tag_digests.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        base::ambient::Ambient,
        models::{pool::Tags, tag_digests::TagKey},
    };

    fn plain() -> SearchedPool {
        SearchedPool {
            pool: "n/v/arena/fra".parse().unwrap(),
            shards: 1,
            reservation: Duration::from_secs(120),
            party_capacity: 4,
            tag_digests: TagDigests::default(),
            distance: 0,
        }
    }

    #[test]
    fn a_lobby_that_had_a_free_seat_for_longer_than_an_index_lags_makes_another_needless() {
        let now = Timestamp(100_000);
        let in_use = |taken: u32, joinable_from: u64, vacated_at: Option<u64>| {
            let lobby = json!({
                "lobby_id": "l", "pool": "n/v/arena/fra", "joinable_from": joinable_from, "created_at": 1,
                "stage": "ready", "closed": false, "lease_until": 200_000, "ports": {}, "max_players": 4,
                "max_players_direct": 4, "reservation_secs": 60, "taken": taken, "reserved": {}, "connected": {},
                "vacated_at": vacated_at,
            });
            let (pools, searched) = (Pools::default(), plain());
            pools.keep_lobbies(&searched, vec![serde_json::from_value(lobby).unwrap()], now);
            pools.in_use(&searched, 1, Duration::from_secs(2), now)
        };
        assert_eq!(in_use(3, 97_000, None), (1, true));
        assert_eq!(in_use(4, 97_000, None), (1, false), "full");
        assert_eq!(in_use(3, 98_500, None), (1, false), "not for so long in sight");
        assert_eq!(in_use(3, 97_000, Some(98_500)), (1, false), "a seat left a moment ago");
    }

    #[test]
    fn lost_seats_let_no_find_create_before_it_saw_all_shards() {
        let now = Timestamp(100_000);
        let after_two = |shards: u32| {
            let (pools, searched) = (Pools::default(), [SearchedPool { shards, ..plain() }]);
            searched.iter().for_each(|searched| (0..2).for_each(|_| pools.note_lost_seat(searched, now)));
            (pools.contention(&searched, now), pools.create_early(&searched, now))
        };
        assert_eq!(after_two(1), (Contention::Busy, true));
        assert_eq!(after_two(4), (Contention::Busy, false));
    }

    #[test]
    fn tags_that_players_choose_displace_nothing_that_is_known_without_tags() {
        let (pools, now, key) = (Pools::default(), Timestamp(1_000), TagKey::random(&Ambient::system()));
        let with = |tags: Tags| SearchedPool { tag_digests: TagDigests::of(&tags, &key), ..plain() };
        let plain = plain();
        pools.begin_find(std::slice::from_ref(&plain), now);
        for code in 0..5_000 {
            pools.begin_find(&[with(Tags::from([("code".to_owned(), code.to_string())]))], now);
        }
        assert_eq!(pools.finds_in_a_second(&plain, now), 1);
    }
}

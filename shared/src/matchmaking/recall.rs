//! What one function instance remembers between finds. All of it may be wrong without harm (decision 17).
//!
//! From `WARM_FINDS` on, an instance tries the lobby in which it last took a seat before it looks. From
//! `LOAD_FINDS` on, while that lasts, it creates lobbies without an election and fills them alone: its lane
//! (decision 18).
//!
//! An instance has one find at a time. Several at once are as safe, but not tuned for: they compete like
//! those of different instances.
//!
//! A pool is busy for an instance under load, and for a second after one of these:
//!
//! - positions of its head were drawn 250 times a second, or the head took no more writes,
//! - two candidates that looks showed were full within a second, or a find lost two seats of a burst,
//! - a look into shards showed more than sixteen candidates.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    base::ambient::{Ambient, Timestamp},
    matchmaking::{
        limits::{COMPARED_MAX, LEARNT_AGE_MAX},
        outcomes::NoRoom,
    },
    models::{
        ids::{LobbyId, NamespaceId},
        lobby::Lobby,
        pool::Pool,
        server::{PlacementPool, Server},
    },
    store::{
        creation::{Burst, HeadKey},
        lobbies::{Candidate, Hiding},
        shards::SIGN_KNOWN_FOR,
    },
    wire::explanation::Obstacles,
};

/// Finds in one pool within [`LEARNT_AGE_MAX`] from which an instance goes by what it learnt.
const WARM_FINDS: usize = 5;
/// Those from which it is under load: it makes lobbies without asking others.
const LOAD_FINDS: usize = 32;
/// Seats lost to other instances within [`LEARNT_AGE_MAX`] from which an instance under load keeps to lobbies
/// of its own.
const LANE_CONFLICTS: usize = 3;
/// Candidates that were full when a find came, within [`LEARNT_AGE_MAX`], from which a pool is busy.
const LOST_SEATS_BUSY: usize = 2;
/// For how long the shards that a sign told are looked into, though it was not seen since.
const TOLD_SHARDS_AGE_MAX: Duration = Duration::from_secs(15);
/// How long after learning of shards an instance has the pool grow no more: until lobbies have moved there.
const GROWTH_PAUSE: Duration = Duration::from_secs(3);
/// Meetings of creations at servers that count: they spread over 2^10 servers at most.
const SPREAD_CONFLICTS_MAX: usize = 10;
/// Servers with a part of the cap left, from which creations that are spread over servers keep to them.
const SERVERS_ALLOTTED_MIN: usize = 8;
/// Entries of each kind kept.
const ENTRIES_MAX: usize = 1_024;
/// By how much a pool whose index was too slow gets more shards.
const SHARD_GROWTH: u8 = 4;
/// How often an instance sees whether shards are still needed, while finds look at them.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);

/// The memory of one instance.
#[derive(Debug, Default)]
pub(super) struct Recall(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    pools: HashMap<Pool, PoolMemory>,
    bursts: HashMap<HeadKey, BurstMemory>,
    servers: HashMap<PlacementPool, (Timestamp, Vec<Server>)>,
    /// When creations of this instance met others at a server.
    server_conflicts: HashMap<PlacementPool, VecDeque<Timestamp>>,
    /// Searches for room that were in vain, each with until when that is believed and what stood against the
    /// game servers.
    vain_searches: HashMap<(Pool, NoRoom), (Timestamp, Obstacles)>,
    /// Namespaces that were seen to hold as many lobbies as they may, each with that cap and until when it is
    /// believed.
    full: HashMap<NamespaceId, (u32, Timestamp)>,
}

#[derive(Debug, Default)]
struct PoolMemory {
    finds: VecDeque<Timestamp>,
    lobby: Option<RememberedLobby>,
    /// Seats lost to other instances.
    conflicts: VecDeque<Timestamp>,
    is_laned: bool,
    /// Until when what was seen of others' finds says that the pool is busy.
    busy_until: Timestamp,
    /// When the index was too slow for a lobby, or others' finds told that it will be.
    slow_index_at: Option<Timestamp>,
    /// Shards as this instance wrote the sign of them, and when.
    shards: Option<(u8, Timestamp)>,
    /// Shards as the sign told them last, and when.
    told_shards: Option<(u8, Timestamp)>,
    /// Lobbies with a seat that the last look ahead read, and when.
    read: (Vec<Lobby>, Timestamp),
    /// The last candidate that it showed, when more follow in its shard: where the next such look begins.
    looked_to: Option<Candidate>,
    /// When lobbies that a look showed turned out to be full.
    lost_seats: VecDeque<Timestamp>,
    /// When this instance last saw whether the shards are still needed.
    swept_at: Option<Timestamp>,
}

/// What is to be done about a pool's shards before a lobby is created in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharding {
    /// The first one will do.
    Unneeded,
    /// So many can be used.
    Known(u8),
    /// The sign of so many must be written first.
    Sign(u8),
}

#[derive(Debug)]
struct RememberedLobby {
    lobby_id: LobbyId,
    /// Its pool, in its shard.
    pool: Pool,
    /// Free seats, less one for a find that was sent there.
    free: u32,
    max_players: u32,
    first_lapse: Timestamp,
    learnt_at: Timestamp,
}

impl RememberedLobby {
    /// Whether it should have a seat.
    fn has_seat(&self, now: Timestamp) -> bool {
        self.free > 0 && now.since(self.learnt_at) < LEARNT_AGE_MAX
    }

    fn hiding(&self, now: Timestamp) -> Hiding {
        if self.free == 1 && self.first_lapse > now {
            let taken = self.max_players.saturating_sub(1);
            Hiding::IfLast { taken, lapse: self.first_lapse, shard: self.pool.shard }
        } else {
            Hiding::No
        }
    }
}

impl PoolMemory {
    fn is_under_load(&self) -> bool {
        self.finds.len() >= LOAD_FINDS
    }

    /// How many shards to look into.
    fn shards_known(&self, now: Timestamp) -> u8 {
        let known = [self.told_shards, self.shards].into_iter().flatten();
        let known = known.filter(|(_, at)| now.since(*at) < TOLD_SHARDS_AGE_MAX);
        known.map(|(shards, _)| shards).max().unwrap_or(1)
    }

    fn remembered(&mut self, id: &LobbyId) -> Option<&mut RememberedLobby> {
        self.lobby.as_mut().filter(|lobby| lobby.lobby_id == *id)
    }
}

/// A lobby to try unlooked, because it should have a seat for this find.
#[derive(Debug)]
pub(super) struct Tip {
    pub(super) lobby_id: LobbyId,
    /// Its pool, in its shard.
    pub(super) pool: Pool,
    pub(super) hiding: Hiding,
}

#[derive(Debug)]
struct BurstMemory {
    burst: Burst,
    /// The burst's last lobby so far.
    last_lobby: LobbyId,
    is_exhausted: bool,
    /// Whether this instance began it, and met nobody doing so.
    is_alone: bool,
}

impl Recall {
    /// Notes a find in `pool` that begins; whether it may go by what the instance learnt there.
    pub(super) fn begin_find(&self, pool: &Pool, now: Timestamp) -> bool {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.clone()).or_default();
        drop_old(&mut memory.finds, now);
        if memory.finds.len() >= LOAD_FINDS {
            memory.finds.pop_front();
        }
        memory.finds.push_back(now);
        if !memory.is_under_load() {
            memory.is_laned = false;
        }
        memory.finds.len() >= WARM_FINDS || memory.busy_until > now
    }

    /// Whether this instance may be expected to fill a lobby of `max_players` within two seconds.
    pub(super) fn fills_alone(&self, pool: &Pool, max_players: u32, now: Timestamp) -> bool {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(&pool.whole()) else { return false };
        drop_old(&mut memory.finds, now);
        let seats = memory.finds.len() * 2;
        memory.is_under_load() && seats >= usize::try_from(max_players).unwrap_or(usize::MAX)
    }

    /// The lobby used last, if it was within the last second and should have a seat.
    pub(super) fn tip(&self, pool: &Pool, now: Timestamp) -> Option<Tip> {
        let mut memory = self.memory();
        let lobby = memory.pools.get_mut(pool)?.lobby.as_mut()?;
        if !lobby.has_seat(now) {
            return None;
        }
        let hiding = lobby.hiding(now);
        lobby.free -= 1;
        Some(Tip { lobby_id: lobby.lobby_id.clone(), pool: lobby.pool.clone(), hiding })
    }

    /// How to take a seat in a lobby that was looked up: when this instance knows it and saw one seat left,
    /// however long ago, that seat is likely to be the last. Guessed wrong it costs a write, guessed right it
    /// saves one.
    pub(super) fn hiding(&self, pool: &Pool, id: &LobbyId, now: Timestamp) -> Hiding {
        let mut memory = self.memory();
        let lobby = memory.pools.get_mut(&pool.whole()).and_then(|memory| memory.remembered(id));
        lobby.map_or(Hiding::No, |lobby| lobby.hiding(now))
    }

    /// Notes that another instance took the seat that a tip had sent a find to.
    pub(super) fn note_lost_tip(&self, pool: &Pool, now: Timestamp) {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(pool) else { return };
        drop_old(&mut memory.conflicts, now);
        memory.conflicts.push_back(now);
        if memory.conflicts.len() >= LANE_CONFLICTS && memory.is_under_load() {
            memory.is_laned = true;
        }
    }

    /// Notes that a lobby of `pool` that a look showed had no seat for the find.
    pub(super) fn note_lost_seat(&self, pool: &Pool, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.whole()).or_default();
        drop_old(&mut memory.lost_seats, now);
        memory.lost_seats.push_back(now);
        if memory.lost_seats.len() >= LOST_SEATS_BUSY {
            memory.lost_seats.clear();
            memory.busy_until = now + LEARNT_AGE_MAX;
        }
    }

    /// Finds in `pool` within the last second, so far as they are counted.
    pub(super) fn finds_in_a_second(&self, pool: &Pool, now: Timestamp) -> usize {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(&pool.whole()) else { return 0 };
        drop_old(&mut memory.finds, now);
        memory.finds.len()
    }

    /// Notes that a look at a busy pool showed so many candidates, and where the next one begins.
    pub(super) fn note_shown(&self, pool: &Pool, shown: usize, looked_to: Option<Candidate>, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.whole()).or_default();
        // In a pool with shards, so many show that it still needs them.
        let shards = usize::from(memory.shards_known(now));
        if shards > 1 && shown * shards > COMPARED_MAX {
            memory.busy_until = now + LEARNT_AGE_MAX;
        }
        memory.looked_to = looked_to;
    }

    /// Keeps lobbies of a busy pool as they were read, for the next finds.
    pub(super) fn keep_lobbies(&self, pool: &Pool, lobbies: Vec<Lobby>, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        memory.pools.entry(pool.whole()).or_default().read = (lobbies, now);
    }

    /// One of the lobbies kept, any of them, which is kept no longer; and when it was read.
    pub(super) fn draw_lobby(
        &self,
        pool: &Pool,
        ambient: &Ambient,
        now: Timestamp,
    ) -> Option<(Lobby, Timestamp)> {
        let mut memory = self.memory();
        let (lobbies, read_at) = &mut memory.pools.get_mut(&pool.whole())?.read;
        if now.since(*read_at) >= LEARNT_AGE_MAX {
            return None;
        }
        Some((ambient.draw(lobbies)?, *read_at))
    }

    /// Keeps the lobbies no longer: one of them was found to be full.
    pub(super) fn forget_lobbies(&self, pool: &Pool) {
        if let Some(memory) = self.memory().pools.get_mut(&pool.whole()) {
            memory.read.0.clear();
        }
    }

    /// Notes how many shards of `pool` a look was told, and how many candidates it showed.
    pub(super) fn note_shards(&self, pool: &Pool, shards: u8, seen: usize, now: Timestamp) {
        let mut memory = self.memory();
        if shards == 1 && !memory.pools.contains_key(&pool.whole()) {
            return;
        }
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.whole()).or_default();
        memory.told_shards = Some((shards, now));
        if shards > 1 && seen > COMPARED_MAX {
            memory.busy_until = now + LEARNT_AGE_MAX;
        }
    }

    /// The shard of the busy `pool` to look into and the candidate to begin after: where the last such look
    /// ended, so that instances spread over the index; else any shard known, from its beginning.
    pub(super) fn next_look(
        &self,
        pool: &Pool,
        ambient: &Ambient,
        now: Timestamp,
    ) -> (u8, Option<Candidate>) {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(&pool.whole()) else { return (0, None) };
        if let Some(last) = memory.looked_to.take() {
            return (last.pool.shard, Some(last));
        }
        (u8::try_from(ambient.below(memory.shards_known(now).into())).unwrap_or(0), None)
    }

    /// Notes that many finds of other instances meet this one's in `pool`.
    pub(super) fn note_busy(&self, pool: &Pool, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        memory.pools.entry(pool.whole()).or_default().busy_until = now + LEARNT_AGE_MAX;
    }

    /// Whether many finds of other instances met this one's in `pool` within the last second, or this
    /// instance fills lobbies of its own or is under load.
    pub(super) fn is_busy(&self, pool: &Pool, now: Timestamp) -> bool {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(&pool.whole()) else { return false };
        drop_old(&mut memory.finds, now);
        memory.busy_until > now || memory.is_laned || memory.is_under_load()
    }

    /// Whether it is busy, or this instance has so many finds there that it reads some of its lobbies ahead.
    pub(super) fn reads_ahead(&self, pool: &Pool, now: Timestamp) -> bool {
        self.is_busy(pool, now) || self.finds_in_a_second(pool, now) >= WARM_FINDS
    }

    /// Keeps a lobby as a seat just taken showed it, unless another one still has seats for this instance, or
    /// its own seats are promised to others.
    pub(super) fn remember_lobby(&self, lobby: &Lobby, is_promised: bool, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(lobby.pool.whole()).or_default();
        let free = lobby.max_players.saturating_sub(lobby.taken);
        if let Some(remembered) = memory.remembered(&lobby.lobby_id) {
            remembered.free = remembered.free.min(free);
            remembered.learnt_at = now;
        } else if free > 0 && !is_promised && memory.lobby.as_ref().is_none_or(|lobby| !lobby.has_seat(now)) {
            memory.lobby = Some(RememberedLobby {
                lobby_id: lobby.lobby_id.clone(),
                pool: lobby.pool.clone(),
                free,
                max_players: lobby.max_players,
                first_lapse: lobby.earliest_lapse(),
                learnt_at: now,
            });
        }
    }

    pub(super) fn forget_lobby(&self, pool: &Pool, id: &LobbyId) {
        if let Some(memory) = self.memory().pools.get_mut(&pool.whole())
            && memory.remembered(id).is_some()
        {
            memory.lobby = None;
        }
    }

    /// Notes a burst and its last lobby as this instance knows them.
    pub(super) fn remember_burst(&self, key: &HeadKey, burst: Burst, last_lobby: LobbyId) {
        let mut memory = self.memory();
        make_space(&mut memory.bursts);
        memory
            .bursts
            .insert(key.clone(), BurstMemory { burst, last_lobby, is_exhausted: false, is_alone: false });
    }

    /// Notes that `lobby` was seen full: a burst that ends with it is exhausted.
    pub(super) fn saw_full(&self, lobby: &Lobby) {
        if lobby.taken < lobby.max_players {
            return;
        }
        let key = HeadKey::new(&lobby.pool, &lobby.tag_digests, lobby.max_players);
        if let Some(memory) = self.memory().bursts.get_mut(&key)
            && memory.last_lobby == lobby.lobby_id
        {
            memory.is_exhausted = true;
        }
    }

    /// Notes that the index was too slow for a lobby of `pool`, or will be: it needs more shards.
    pub(super) fn note_slow_index(&self, pool: &Pool, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        memory.pools.entry(pool.whole()).or_default().slow_index_at = Some(now);
    }

    /// What this instance knows of the shards of `pool`.
    pub(super) fn sharding(&self, pool: &Pool, now: Timestamp) -> Sharding {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(&pool.whole()) else { return Sharding::Unneeded };
        let (shards, signed_at) = memory.shards.unwrap_or((1, Timestamp::default()));
        let age = now.since(signed_at);
        let (told, told_at) = memory.told_shards.unwrap_or((1, Timestamp::default()));
        let is_slow = memory.slow_index_at.take().is_some_and(|at| now.since(at) < LEARNT_AGE_MAX);
        if told > shards && now.since(told_at) < LEARNT_AGE_MAX {
            return Sharding::Sign(told);
        }
        if is_slow && (shards == 1 || age >= GROWTH_PAUSE) {
            return Sharding::Sign(shards.saturating_mul(SHARD_GROWTH));
        }
        match shards {
            1 => Sharding::Unneeded,
            _ if age < SIGN_KNOWN_FOR => Sharding::Known(shards),
            _ if age < SIGN_KNOWN_FOR * 2 => Sharding::Sign(shards),
            _ => Sharding::Unneeded,
        }
    }

    /// Notes that the sign tells `shards` shards of `pool`.
    pub(super) fn remember_shards(&self, pool: &Pool, shards: u8, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        memory.pools.entry(pool.whole()).or_default().shards = Some((shards, now));
    }

    /// Whether to see if the shards of `pool` are still needed: not at once, then every so often.
    pub(super) fn is_sweep_due(&self, pool: &Pool, now: Timestamp) -> bool {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.whole()).or_default();
        // An instance that has just started cannot tell how long they have been there.
        let swept_at = *memory.swept_at.get_or_insert(now);
        let is_due = now.since(swept_at) >= SWEEP_INTERVAL;
        if is_due {
            memory.swept_at = Some(now);
        }
        is_due
    }

    /// Notes whether this instance began the burst that it knows of `key` without meeting anybody.
    pub(super) fn note_alone(&self, key: &HeadKey, is_alone: bool) {
        if let Some(memory) = self.memory().bursts.get_mut(key) {
            memory.is_alone = is_alone;
        }
    }

    /// Whether this instance was alone when it last began a burst of `key`, and saw no other burst since.
    pub(super) fn is_alone(&self, key: &HeadKey) -> bool {
        self.memory().bursts.get(key).is_some_and(|memory| memory.is_alone)
    }

    /// The burst of `key`, when it is younger than `age_max` and not known to be exhausted.
    pub(super) fn young_burst(&self, key: &HeadKey, now: Timestamp, age_max: Duration) -> Option<Burst> {
        let memory = self.memory();
        let is_young =
            |memory: &&BurstMemory| !memory.is_exhausted && now.since(memory.burst.opened_at) < age_max;
        memory.bursts.get(key).filter(is_young).map(|memory| memory.burst.clone())
    }

    /// The burst of `key`, when all its lobbies that this instance knows of are full.
    pub(super) fn exhausted_burst(&self, key: &HeadKey) -> Option<Burst> {
        let memory = self.memory();
        memory.bursts.get(key).filter(|memory| memory.is_exhausted).map(|memory| memory.burst.clone())
    }

    /// How many servers of `pool` that `fits` are known.
    pub(super) fn server_count(&self, pool: &PlacementPool, fits: impl Fn(&Server) -> bool) -> u32 {
        let memory = self.memory();
        let servers = memory
            .servers
            .get(pool)
            .map_or(0, |(_, servers)| servers.iter().filter(|server| fits(server)).count());
        u32::try_from(servers).unwrap_or(u32::MAX)
    }

    /// The `pick`-th fullest server known that `fits`, round and round, when the knowledge is younger than
    /// `age_max`.
    ///
    /// Of equally full ones those with a part of the cap left come first: they cost no write of the ledger.
    pub(super) fn nth_fullest_server(
        &self,
        pool: &PlacementPool,
        pick: u64,
        age_max: Duration,
        now: Timestamp,
        fits: impl Fn(&Server) -> bool,
    ) -> Option<Server> {
        let memory = self.memory();
        let (read_at, servers) = memory.servers.get(pool)?;
        if now.since(*read_at) >= age_max {
            return None;
        }
        let mut fitting: Vec<&Server> = servers.iter().filter(|server| fits(server)).collect();
        let free_places =
            |server: &&Server| (server.capacity - server.used, server.allotted_left() == 0, server.ranked_at);
        if pick > 0 {
            // Several at a time meet at the ledger, unless their servers have a part of the cap left.
            if fitting.iter().filter(|server| server.allotted_left() > 0).count() >= SERVERS_ALLOTTED_MIN {
                fitting.retain(|server| server.allotted_left() > 0);
            }
            fitting.sort_by_key(free_places);
            let nth = pick.checked_rem(fitting.len() as u64)?;
            return fitting.get(usize::try_from(nth).ok()?).copied().cloned();
        }
        fitting.into_iter().min_by_key(free_places).cloned()
    }

    /// Notes that a creation met another one at a server of `pool`.
    pub(super) fn note_server_conflict(&self, pool: &PlacementPool, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.server_conflicts);
        let conflicts = memory.server_conflicts.entry(pool.clone()).or_default();
        drop_old(conflicts, now);
        if conflicts.len() < SPREAD_CONFLICTS_MAX {
            conflicts.push_back(now);
        }
    }

    /// Over how many of the fullest servers to spread creations: one while they do not meet, twice as many
    /// for each time that they did within the last second.
    pub(super) fn server_spread(&self, pool: &PlacementPool, now: Timestamp) -> u64 {
        let mut memory = self.memory();
        let Some(conflicts) = memory.server_conflicts.get_mut(pool) else { return 1 };
        drop_old(conflicts, now);
        1 << conflicts.len()
    }

    pub(super) fn remember_servers(&self, pool: &PlacementPool, servers: Vec<Server>, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.servers);
        memory.servers.insert(pool.clone(), (now, servers));
    }

    pub(super) fn forget_servers(&self, pool: &PlacementPool) {
        self.memory().servers.remove(pool);
    }

    /// Corrects what is known of one server: as `server`, or gone.
    pub(super) fn correct_server(&self, known: &Server, corrected: Option<Server>) {
        if let Some((_, servers)) = self.memory().servers.get_mut(&known.pool()) {
            servers.retain(|server| server.server != known.server);
            servers.extend(corrected);
        }
    }

    /// Whether a search for a lobby that may end, to make room for one of `wanted`, was in vain a moment ago;
    /// and what stood against its game servers.
    pub(super) fn searched_in_vain(
        &self,
        wanted: &Pool,
        needed: NoRoom,
        now: Timestamp,
    ) -> Option<Obstacles> {
        let memory = self.memory();
        let (until, obstacles) = memory.vain_searches.get(&(wanted.whole(), needed))?;
        (now < *until).then(|| obstacles.clone())
    }

    pub(super) fn remember_vain_search(
        &self,
        wanted: &Pool,
        needed: NoRoom,
        obstacles: Obstacles,
        until: Timestamp,
    ) {
        let mut memory = self.memory();
        make_space(&mut memory.vain_searches);
        memory.vain_searches.insert((wanted.whole(), needed), (until, obstacles));
    }

    /// Whether the namespace was seen to hold its `cap` of lobbies within the last second, so that a refused
    /// find need not read all of its servers again.
    pub(super) fn is_full(&self, namespace_id: &NamespaceId, cap: u32, now: Timestamp) -> bool {
        self.memory().full.get(namespace_id).is_some_and(|(seen, until)| *seen == cap && now < *until)
    }

    /// The namespace holds its `cap` of lobbies; believed `until` then, unless this instance ends one of
    /// them.
    pub(super) fn remember_full(&self, namespace_id: &NamespaceId, cap: u32, until: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.full);
        memory.full.insert(namespace_id.clone(), (cap, until));
    }

    pub(super) fn forget_full(&self, namespace_id: &NamespaceId) {
        self.memory().full.remove(namespace_id);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_old(times: &mut VecDeque<Timestamp>, now: Timestamp) {
    while times.front().is_some_and(|at| now.since(*at) >= LEARNT_AGE_MAX) {
        times.pop_front();
    }
}

/// Everything remembered can be learnt again, so a full memory simply starts afresh.
fn make_space<K, V>(entries: &mut HashMap<K, V>) {
    if entries.len() >= ENTRIES_MAX {
        entries.clear();
    }
}

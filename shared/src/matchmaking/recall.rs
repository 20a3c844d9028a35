//! What one function instance remembers between finds. All of it may be wrong without harm.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::create::NoRoom;
use crate::{
    ambient::Timestamp,
    ids::{GameMode, LobbyId},
    lobby::Lobby,
    models::Pool,
    store::{
        creation::{Burst, HeadKey},
        lobbies::Hiding,
        servers::{PlacementPool, Server},
    },
};

/// How long what was learnt may be reused (decisions on matching).
const LEARNT_AGE_MAX: Duration = Duration::from_secs(1);
/// Finds in one pool within [`LEARNT_AGE_MAX`] from which an instance is under load.
const LOAD_FINDS: usize = 32;
/// Seats lost to other instances within [`LEARNT_AGE_MAX`] from which an instance under load keeps to lobbies of its own.
const LANE_CONFLICTS: usize = 3;
/// Entries of each kind kept.
const ENTRIES_MAX: usize = 1_024;
/// How long a fruitless search for lobbies that may end is not repeated: it reads much.
const ROOM_SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// The memory of one instance.
#[derive(Debug, Default)]
pub(super) struct Recall(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    pools: HashMap<Pool, PoolMemory>,
    bursts: HashMap<HeadKey, BurstMemory>,
    servers: HashMap<PlacementPool, (Timestamp, Vec<Server>)>,
    fruitless_searches: HashMap<(PlacementPool, NoRoom), Timestamp>,
}

#[derive(Debug, Default)]
struct PoolMemory {
    finds: VecDeque<Timestamp>,
    /// Finds of this instance under way; a deployed function has one at a time.
    under_way: usize,
    lobby: Option<RememberedLobby>,
    /// Seats lost to other instances.
    conflicts: VecDeque<Timestamp>,
    is_laned: bool,
    gate: Arc<tokio::sync::Mutex<()>>,
    /// When a find that was to bring a lobby for all brought none.
    refused_at: Option<Timestamp>,
}

#[derive(Debug)]
struct RememberedLobby {
    lobby_id: LobbyId,
    /// Free seats, less those that finds under way were sent to.
    free: u32,
    /// Finds under way that were sent here.
    sent: u32,
    max_players: u32,
    first_lapse: Timestamp,
    learnt_at: Timestamp,
}

impl RememberedLobby {
    /// With others on their way there, a find may not come last.
    fn hiding(&self, now: Timestamp) -> Hiding {
        if self.free == 1 && self.sent == 0 && self.first_lapse > now {
            Hiding::IfLast { taken: self.max_players.saturating_sub(1), lapse: self.first_lapse }
        } else {
            Hiding::No
        }
    }
}

impl PoolMemory {
    fn is_under_load(&self) -> bool {
        self.finds.len() >= LOAD_FINDS
    }

    fn remembered(&mut self, id: &LobbyId) -> Option<&mut RememberedLobby> {
        self.lobby.as_mut().filter(|lobby| lobby.lobby_id == *id)
    }
}

/// A lobby to try unlooked, because it should have a seat for this find.
#[derive(Debug)]
pub(super) struct Tip {
    pub(super) lobby_id: LobbyId,
    pub(super) hiding: Hiding,
}

#[derive(Debug)]
struct BurstMemory {
    burst: Burst,
    /// The burst's last lobby so far.
    last_lobby: LobbyId,
    is_exhausted: bool,
}

impl Recall {
    /// Notes a find in `pool` that begins; whether the instance is under load there.
    pub(super) fn begin_find(&self, pool: &Pool, now: Timestamp) -> bool {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.clone()).or_default();
        drop_old(&mut memory.finds, now);
        if memory.finds.len() >= LOAD_FINDS {
            memory.finds.pop_front();
        }
        memory.finds.push_back(now);
        memory.under_way += 1;
        if !memory.is_under_load() {
            memory.is_laned = false;
        }
        memory.is_under_load()
    }

    /// Notes that a find in `pool` ended.
    pub(super) fn end_find(&self, pool: &Pool) {
        if let Some(memory) = self.memory().pools.get_mut(pool) {
            memory.under_way = memory.under_way.saturating_sub(1);
        }
    }

    /// The lobby used last, if it was within the last second and should have a seat that no other find was sent to.
    pub(super) fn tip(&self, pool: &Pool, now: Timestamp) -> Option<Tip> {
        let mut memory = self.memory();
        let lobby = memory.pools.get_mut(pool)?.lobby.as_mut()?;
        if lobby.free == 0 || now.since(lobby.learnt_at) >= LEARNT_AGE_MAX {
            return None;
        }
        let hiding = lobby.hiding(now);
        lobby.free -= 1;
        lobby.sent += 1;
        Some(Tip { lobby_id: lobby.lobby_id.clone(), hiding })
    }

    /// How to take a seat in a lobby that was looked up: when this instance knows it and saw one seat left, however long
    /// ago, that seat is likely to be the last. Guessed wrong it costs a write, guessed right it saves one.
    pub(super) fn hiding(&self, pool: &Pool, id: &LobbyId, now: Timestamp) -> Hiding {
        let mut memory = self.memory();
        let lobby = memory.pools.get_mut(pool).and_then(|memory| memory.remembered(id));
        lobby.map_or(Hiding::No, |lobby| lobby.hiding(now))
    }

    /// Whether a tip can be had.
    pub(super) fn has_tip(&self, pool: &Pool, now: Timestamp) -> bool {
        let memory = self.memory();
        let lobby = memory.pools.get(pool).and_then(|memory| memory.lobby.as_ref());
        lobby.is_some_and(|lobby| lobby.free > 0 && now.since(lobby.learnt_at) < LEARNT_AGE_MAX)
    }

    /// Notes that a find came back from where a tip had sent it; `refused` when others had been quicker.
    pub(super) fn return_tip(&self, pool: &Pool, tip: &Tip, refused: bool, now: Timestamp) {
        let mut memory = self.memory();
        let Some(memory) = memory.pools.get_mut(pool) else { return };
        if let Some(lobby) = memory.remembered(&tip.lobby_id) {
            lobby.sent = lobby.sent.saturating_sub(1);
        }
        // Alone in its instance, the find lost to another instance.
        if refused && memory.under_way <= 1 {
            drop_old(&mut memory.conflicts, now);
            memory.conflicts.push_back(now);
            if memory.conflicts.len() >= LANE_CONFLICTS && memory.is_under_load() {
                memory.is_laned = true;
            }
        }
    }

    /// Whether this instance fills lobbies of its own in `pool`: under load, after losing seats to other instances.
    pub(super) fn is_laned(&self, pool: &Pool) -> bool {
        self.memory().pools.get(pool).is_some_and(|memory| memory.is_laned)
    }

    /// What finds of this instance that all need a new lobby of `pool` wait at, so that one brings it for all.
    pub(super) fn gate(&self, pool: &Pool) -> Arc<tokio::sync::Mutex<()>> {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        Arc::clone(&memory.pools.entry(pool.clone()).or_default().gate)
    }

    /// Whether bringing a lobby failed within the last second: then each find must see for itself, and at once.
    pub(super) fn was_refused(&self, pool: &Pool, now: Timestamp) -> bool {
        let memory = self.memory();
        let refused_at = memory.pools.get(pool).and_then(|memory| memory.refused_at);
        refused_at.is_some_and(|at| now.since(at) < LEARNT_AGE_MAX)
    }

    pub(super) fn note_refusal(&self, pool: &Pool, now: Timestamp) {
        if let Some(memory) = self.memory().pools.get_mut(pool) {
            memory.refused_at = Some(now);
        }
    }

    /// Keeps a lobby as a seat just taken showed it.
    pub(super) fn remember_lobby(&self, lobby: &Lobby, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(lobby.pool.clone()).or_default();
        let free = lobby.max_players.saturating_sub(lobby.taken);
        if let Some(remembered) = memory.remembered(&lobby.lobby_id) {
            remembered.free = remembered.free.min(free);
            remembered.learnt_at = now;
        } else if free > 0 {
            memory.lobby = Some(RememberedLobby {
                lobby_id: lobby.lobby_id.clone(),
                free,
                sent: 0,
                max_players: lobby.max_players,
                first_lapse: lobby.first_lapse(),
                learnt_at: now,
            });
        }
    }

    pub(super) fn forget_lobby(&self, pool: &Pool, id: &LobbyId) {
        if let Some(memory) = self.memory().pools.get_mut(pool)
            && memory.remembered(id).is_some()
        {
            memory.lobby = None;
        }
    }

    /// Notes a burst and its last lobby as this instance knows them.
    pub(super) fn remember_burst(&self, key: &HeadKey, burst: Burst, last_lobby: LobbyId) {
        let mut memory = self.memory();
        make_space(&mut memory.bursts);
        memory.bursts.insert(key.clone(), BurstMemory { burst, last_lobby, is_exhausted: false });
    }

    /// Notes that `lobby` was seen full: a burst that ends with it is exhausted.
    pub(super) fn saw_full(&self, lobby: &Lobby) {
        if lobby.taken < lobby.max_players {
            return;
        }
        let key = HeadKey::new(&lobby.pool, &lobby.tags, lobby.max_players);
        if let Some(memory) = self.memory().bursts.get_mut(&key)
            && memory.last_lobby == lobby.lobby_id
        {
            memory.is_exhausted = true;
        }
    }

    /// The burst of `key`, when all its lobbies that this instance knows of are full.
    pub(super) fn exhausted_burst(&self, key: &HeadKey) -> Option<Burst> {
        let memory = self.memory();
        memory.bursts.get(key).filter(|memory| memory.is_exhausted).map(|memory| memory.burst.clone())
    }

    /// The fullest server known to fit `mode`, when the knowledge is younger than `age_max`, and its lease as good as then.
    pub(super) fn fullest_fresh_server(
        &self,
        pool: &PlacementPool,
        mode: &GameMode,
        age_max: Duration,
        now: Timestamp,
    ) -> Option<Server> {
        let memory = self.memory();
        let (read_at, servers) = memory.servers.get(pool)?;
        let is_fresh = |server: &&Server| server.has_fresh_lease(now);
        if now.since(*read_at) >= age_max {
            return None;
        }
        fullest(servers.iter().filter(is_fresh), mode, now)
    }

    /// The fullest server known to fit `mode`.
    pub(super) fn fullest_known_server(
        &self,
        pool: &PlacementPool,
        mode: &GameMode,
        now: Timestamp,
    ) -> Option<Server> {
        let memory = self.memory();
        fullest(memory.servers.get(pool)?.1.iter(), mode, now)
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
        if let Some((_, servers)) = self.memory().servers.get_mut(&known.placement_pool) {
            servers.retain(|server| server.server != known.server);
            servers.extend(corrected);
        }
    }

    /// Whether a search for a lobby that may end, to make room for one of `wanted`, was fruitless within the last second.
    pub(super) fn searched_in_vain(&self, wanted: &Pool, needed: NoRoom, now: Timestamp) -> bool {
        let memory = self.memory();
        let last = memory.fruitless_searches.get(&(placement(wanted), needed));
        last.is_some_and(|at| now.since(*at) < ROOM_SEARCH_INTERVAL)
    }

    pub(super) fn remember_vain_search(&self, wanted: &Pool, needed: NoRoom, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.fruitless_searches);
        memory.fruitless_searches.insert((placement(wanted), needed), now);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where lobbies of `pool` are placed.
fn placement(pool: &Pool) -> PlacementPool {
    PlacementPool { namespace_id: pool.namespace_id.clone(), region_id: pool.region_id.clone() }
}

fn fullest<'a>(servers: impl Iterator<Item = &'a Server>, mode: &GameMode, now: Timestamp) -> Option<Server> {
    let free_places = |server: &&Server| (server.capacity - server.used, server.ranked_at);
    servers.filter(|server| server.fits(mode, now)).min_by_key(free_places).cloned()
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

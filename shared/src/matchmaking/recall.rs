//! What one function instance remembers between finds. All of it may be wrong without harm.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    ambient::Timestamp,
    ids::{GameMode, LobbyId, NamespaceId},
    lobby::Lobby,
    models::Pool,
    store::{
        creation::{Burst, HeadKey},
        servers::{PlacementPool, Server},
    },
};

/// How long what was learnt may be reused (decisions on matching).
const LEARNT_AGE_MAX: Duration = Duration::from_secs(1);
/// Finds in one pool within [`LEARNT_AGE_MAX`] from which an instance is under load.
const LOAD_FINDS: usize = 32;
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
    fruitless_searches: HashMap<NamespaceId, Timestamp>,
}

#[derive(Debug, Default)]
struct PoolMemory {
    finds: VecDeque<Timestamp>,
    lobby: Option<(LobbyId, Timestamp)>,
}

#[derive(Debug)]
struct BurstMemory {
    burst: Burst,
    /// The burst's last lobby so far.
    last_lobby: LobbyId,
    is_exhausted: bool,
}

impl Recall {
    /// Notes a find in `pool`; under load the lobby to try first, if one was used within the last second.
    pub(super) fn lobby_under_load(&self, pool: &Pool, now: Timestamp) -> Option<LobbyId> {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        let memory = memory.pools.entry(pool.clone()).or_default();
        let recent = |at: &Timestamp| now.since(*at) < LEARNT_AGE_MAX;
        while memory.finds.front().is_some_and(|at| !recent(at)) || memory.finds.len() >= LOAD_FINDS {
            memory.finds.pop_front();
        }
        memory.finds.push_back(now);
        let is_under_load = memory.finds.len() >= LOAD_FINDS;
        memory
            .lobby
            .as_ref()
            .filter(|(_, learnt_at)| is_under_load && recent(learnt_at))
            .map(|(id, _)| id.clone())
    }

    pub(super) fn remember_lobby(&self, pool: &Pool, id: &LobbyId, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.pools);
        memory.pools.entry(pool.clone()).or_default().lobby = Some((id.clone(), now));
    }

    pub(super) fn forget_lobby(&self, pool: &Pool, id: &LobbyId) {
        if let Some(memory) = self.memory().pools.get_mut(pool)
            && memory
                .lobby
                .as_ref()
                .is_some_and(|(remembered, _)| remembered == id)
        {
            memory.lobby = None;
        }
    }

    /// Notes a burst and its last lobby as this instance knows them.
    pub(super) fn remember_burst(&self, key: &HeadKey, burst: Burst, last_lobby: LobbyId) {
        let mut memory = self.memory();
        make_space(&mut memory.bursts);
        memory.bursts.insert(
            key.clone(),
            BurstMemory {
                burst,
                last_lobby,
                is_exhausted: false,
            },
        );
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
        memory
            .bursts
            .get(key)
            .filter(|memory| memory.is_exhausted)
            .map(|memory| memory.burst.clone())
    }

    /// The fullest server known to fit `mode`, when the knowledge is younger than `age_max`.
    pub(super) fn fullest_server(
        &self,
        pool: &PlacementPool,
        mode: &GameMode,
        age_max: Duration,
        now: Timestamp,
    ) -> Option<Server> {
        let memory = self.memory();
        let (read_at, servers) = memory.servers.get(pool)?;
        if now.since(*read_at) >= age_max {
            return None;
        }
        let free_places = |server: &&Server| (server.capacity - server.used, server.registered_at);
        servers
            .iter()
            .filter(|server| server.fits(mode, now))
            .min_by_key(free_places)
            .cloned()
    }

    pub(super) fn remember_servers(&self, pool: &PlacementPool, servers: Vec<Server>, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.servers);
        memory.servers.insert(pool.clone(), (now, servers));
    }

    /// Corrects what is known of one server: as `server`, or gone.
    pub(super) fn correct_server(&self, known: &Server, corrected: Option<Server>) {
        if let Some((_, servers)) = self.memory().servers.get_mut(&known.placement_pool) {
            servers.retain(|server| server.server != known.server);
            servers.extend(corrected);
        }
    }

    /// Whether a search for lobbies of the namespace that may end was fruitless within the last second.
    pub(super) fn searched_in_vain(&self, namespace_id: &NamespaceId, now: Timestamp) -> bool {
        let memory = self.memory();
        let last = memory.fruitless_searches.get(namespace_id);
        last.is_some_and(|at| now.since(*at) < ROOM_SEARCH_INTERVAL)
    }

    pub(super) fn remember_vain_search(&self, namespace_id: &NamespaceId, now: Timestamp) {
        let mut memory = self.memory();
        make_space(&mut memory.fruitless_searches);
        memory.fruitless_searches.insert(namespace_id.clone(), now);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything remembered can be learnt again, so a full memory simply starts afresh.
fn make_space<K, V>(entries: &mut HashMap<K, V>) {
    if entries.len() >= ENTRIES_MAX {
        entries.clear();
    }
}

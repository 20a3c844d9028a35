//! A namespace's list of lobbies, and its number of players.
//!
//! No table is read whole. The list comes from the index of candidates, at most 500 lobbies, so closed ones
//! are not in it (decision 43), and is sent in pages (decision 64). One instance counts the statistics for
//! all, from the lobbies of each game server, at most every five seconds (decision 42).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::value::RawValue;

use crate::{
    auth::settings::Settings,
    base::{
        ambient::{Ambient, Timestamp},
        cache::TimedMap,
        pauses::Pauses,
    },
    models::{
        errors::Error,
        ids::{LobbyId, NamespaceId, VersionId},
        lobby::{Lobby, Stage},
        pool::Pool,
    },
    rules::{listing::listed, pages::PageRequest},
    store::{
        client::Store,
        listing::{LOBBIES_AT_ONCE, QUERIES_AT_ONCE, ids_on, servers_of},
        lobby_data::Part,
        statistics::{COUNT_AGE_MAX, COUNTING_MAX, KeptCount, Turn},
    },
    wire::{LobbyInfo, PlayerStatistics},
};

/// The most lobbies of a list, all its pages together.
pub const LISTED_MAX: usize = 500;
/// The most bytes of all states in one response: sending a million of them costs $24.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of states that are kept with a list: as many as four responses have.
const KEPT_STATE_BYTES_MAX: usize = 4 * STATE_BYTES_MAX;
/// Lists kept: each has at most 1 MB of states and some 0.2 MB of lobbies, and a function 128 MB.
const LISTS_MAX: usize = 32;
/// Counts kept.
const COUNTS_MAX: usize = 256;
/// How old a list may be.
const LIST_AGE_MAX: Duration = Duration::from_secs(5);
/// How old it may be where the first page came from a later list, in which there may be lobbies that this one
/// lacks. Without a pause, any client could have lists read again by naming later times.
const EARLIER_LIST_AGE_MAX: Duration = Duration::from_secs(1);
/// States read first: four of the largest, of 64 KiB, fill a response.
const STATES_AT_FIRST: usize = 4;

/// How old the last count may be while another instance counts: its own maximum, and the longest time that a
/// count takes.
const LAST_COUNT_AGE_MAX: Duration = Duration::from_secs(COUNT_AGE_MAX.as_secs() + COUNTING_MAX.as_secs());
/// Pauses while waiting for a count when there is none: three seconds in all.
const TURN_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(100));
const TURN_PAUSES_MAX: u32 = 5;

/// A page of a list of lobbies.
#[derive(Debug)]
pub struct Page {
    /// The lobbies, those with a free seat first.
    pub lobbies: Vec<LobbyInfo>,
    /// Whether there are more lobbies than all pages may have.
    pub is_truncated: bool,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// A list of lobbies as one instance keeps it, with the states that requests for its pages have read.
#[derive(Debug)]
struct List {
    read_at: Timestamp,
    lobbies: Vec<Listed>,
    is_truncated: bool,
    states: Mutex<HashMap<LobbyId, Box<RawValue>>>,
}

#[derive(Debug)]
struct Listed {
    info: LobbyInfo,
    created_at: Timestamp,
    has_state: bool,
}

/// Reads overviews through a bounded cache.
#[derive(Debug)]
pub struct Overview {
    store: Store,
    ambient: Ambient,
    lists: TimedMap<(NamespaceId, VersionId), Arc<List>>,
    counts: TimedMap<NamespaceId, PlayerStatistics>,
}

impl Overview {
    /// An overview of `store` with empty caches.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, lists: TimedMap::new(LISTS_MAX), counts: TimedMap::new(COUNTS_MAX) }
    }

    /// A page of the public, open lobbies of the namespace's current version in listable modes that
    /// [`listed`] shows, those with free seats first; with their states if requested, up to 256 KB together.
    /// At most 5 s old.
    ///
    /// One query for each listable mode and region and 0.5 read units for each lobby, once in 5 s; 0.5 for
    /// each 4 KB of state, once in 5 s for the first MB of states.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies(
        &self,
        settings: &Settings,
        page: &PageRequest,
        with_states: bool,
    ) -> Result<Page, Error> {
        let list = self.list(settings, page.began_at()).await?;
        let (shown, next_cursor) =
            page.take(&list.lobbies, list.read_at, |lobby| (&lobby.info.lobby_id, lobby.created_at));
        let mut states = if with_states { self.states(&list, &shown).await? } else { HashMap::new() };
        let lobbies = shown
            .into_iter()
            .map(|lobby| LobbyInfo { state: states.remove(&lobby.info.lobby_id), ..lobby.info.clone() });
        Ok(Page { lobbies: lobbies.collect(), is_truncated: list.is_truncated, next_cursor })
    }

    /// The list, of which a first page was read at `began_at` if this is for a later one.
    async fn list(&self, settings: &Settings, began_at: Option<Timestamp>) -> Result<Arc<List>, Error> {
        let now = self.ambient.now();
        let key = (settings.namespace.namespace_id.clone(), settings.version.version_id.clone());
        if let Some(list) = self.lists.get(&key, LIST_AGE_MAX, now)
            && (began_at.is_none_or(|began_at| began_at <= list.read_at)
                || now.since(list.read_at) < EARLIER_LIST_AGE_MAX)
        {
            return Ok(list);
        }
        let list = Arc::new(self.read_list(settings, now).await?);
        self.lists.put(key, Arc::clone(&list), now);
        Ok(list)
    }

    async fn read_list(&self, settings: &Settings, now: Timestamp) -> Result<List, Error> {
        let modes = &settings.version.config.game_modes;
        let pools = modes.iter().filter(|(_, mode)| mode.listable).flat_map(|(game_mode, mode)| {
            mode.regions.iter().map(|region_id| {
                let pool = Pool {
                    namespace_id: settings.namespace.namespace_id.clone(),
                    version_id: settings.version.version_id.clone(),
                    game_mode: game_mode.clone(),
                    region_id: region_id.clone(),
                    shard: 0,
                };
                (pool, mode.pool_shards)
            })
        });
        let queries = stream::iter(pools.collect::<Vec<_>>()).map(|(pool, shards)| async move {
            self.store.candidates(&pool, shards, Timestamp::NEVER, LISTED_MAX + 1).await
        });
        let pages: Vec<Vec<_>> = queries.buffered(QUERIES_AT_ONCE).try_collect().await?;
        let mut candidates = pages.concat();
        // Full lobbies are in sight from the time at which a seat lapses, so they sort after those with free
        // seats.
        candidates.sort_by_key(|candidate| candidate.joinable_from);
        let is_truncated = candidates.len() > LISTED_MAX;
        candidates.truncate(LISTED_MAX);
        let ids: Vec<LobbyId> = candidates.into_iter().map(|candidate| candidate.lobby_id).collect();
        let mut lobbies: HashMap<LobbyId, Lobby> = HashMap::new();
        for lobby in self.store.lobbies(&ids).await? {
            if lobby.stage != Stage::Ended && lobby.joinable_from.is_some() && lobby.lease_until > now {
                lobbies.insert(lobby.lobby_id.clone(), lobby);
            }
        }
        let found = ids.iter().filter_map(|id| lobbies.remove(id)).collect();
        let mut shown = listed(found, settings.namespace.lobby_count_max, now);
        // The index shows a lobby like one with a free seat from the time at which the reservation of a seat
        // would have lapsed, until a find notices that its player has connected.
        shown.sort_by_key(|lobby| lobby.free_seats(now) == 0);
        let count = |seats: usize| u32::try_from(seats).unwrap_or(u32::MAX);
        // Nobody connects before the lobby is ready, from when on seats lapse.
        let connected = |lobby: &Lobby| count(lobby.connected_seats(now));
        let listed = |lobby: Lobby| {
            let mode = modes.get(&lobby.pool.game_mode);
            let info = LobbyInfo {
                total_player_count: count(lobby.held_seats(now)),
                connected_player_count: connected(&lobby),
                max_players_normal: lobby.max_players,
                max_players_direct: lobby.max_players_direct,
                max_players_party: mode.and_then(|mode| mode.max_players_party).unwrap_or(lobby.max_players),
                state: None,
                region_id: lobby.pool.region_id,
                game_mode_id: lobby.pool.game_mode,
                lobby_id: lobby.lobby_id,
            };
            Listed { info, created_at: lobby.created_at, has_state: lobby.has_state }
        };
        let lobbies = shown.into_iter().map(listed).collect();
        Ok(List { read_at: now, lobbies, is_truncated, states: Mutex::default() })
    }

    /// The states of the first of `lobbies`, as many as fit; `null` for lobbies that never set one.
    async fn states(
        &self,
        list: &List,
        lobbies: &[&Listed],
    ) -> Result<HashMap<LobbyId, Box<RawValue>>, Error> {
        let (mut states, mut bytes) = (HashMap::new(), 0);
        let (mut rest, mut at_once) = (lobbies, STATES_AT_FIRST);
        while !rest.is_empty() {
            let (lobbies, later) = rest.split_at(at_once.min(rest.len()));
            let mut found = self.states_of(list, lobbies).await?;
            for lobby in lobbies {
                let lobby_id = &lobby.info.lobby_id;
                let state = found.remove(lobby_id).unwrap_or_else(|| RawValue::NULL.to_owned());
                bytes += state.get().len();
                if bytes > STATE_BYTES_MAX {
                    return Ok(states);
                }
                states.insert(lobby_id.clone(), state);
            }
            // Small states take few calls then, and large ones no more than they fill.
            (rest, at_once) = (later, LOBBIES_AT_ONCE.min(2 * at_once));
        }
        Ok(states)
    }

    /// The states of those of `lobbies` that have one: kept with the list, or read.
    async fn states_of(
        &self,
        list: &List,
        lobbies: &[&Listed],
    ) -> Result<HashMap<LobbyId, Box<RawValue>>, Error> {
        let having = lobbies.iter().filter(|lobby| lobby.has_state).map(|lobby| &lobby.info.lobby_id);
        let (mut found, mut missing) = (HashMap::new(), Vec::new());
        {
            let kept = list.states();
            for id in having {
                match kept.get(id) {
                    Some(state) => drop(found.insert(id.clone(), state.clone())),
                    None => missing.push(id.clone()),
                }
            }
        }
        let read = self.store.lobby_data(&missing, Part::State).await?;
        let mut kept = list.states();
        let mut bytes: usize = kept.values().map(|state| state.get().len()).sum();
        for (id, state) in read {
            bytes += state.get().len();
            if bytes <= KEPT_STATE_BYTES_MAX {
                kept.insert(id.clone(), state.clone());
            }
            found.insert(id, state);
        }
        Ok(found)
    }

    /// Seats held in the namespace, by mode and region; 5 s old at most, or the last count while another
    /// instance counts. Lobbies of every version count, even closed and private ones, but not those of dead
    /// servers.
    ///
    /// A count costs 0.5 read units for each lobby and a few for the servers, one at a time for all instances
    /// together and at most every 5 s; all other calls 0.5 read units, or none within 5 s of the instance's
    /// last, and one write unit while another instance counts.
    ///
    /// # Errors
    /// [`Error::Unavailable`], also while the first count takes long; [`Error::Bug`].
    pub async fn statistics(&self, settings: &Settings) -> Result<PlayerStatistics, Error> {
        let namespace_id = &settings.namespace.namespace_id;
        if let Some(count) = self.counts.get(namespace_id, COUNT_AGE_MAX, self.ambient.now()) {
            return Ok(count);
        }
        for pause in 0..TURN_PAUSES_MAX {
            let now = self.ambient.now();
            let kept = self.store.kept_count(namespace_id).await?;
            if let Some(count) = kept.and_then(|kept| self.usable(namespace_id, &kept, COUNT_AGE_MAX, now)) {
                return Ok(count);
            }
            match self.store.take_turn_to_count(namespace_id, now).await? {
                Turn::Own => return self.count_for_all(settings, now).await,
                Turn::Others(last) => {
                    if let Some(count) = self.usable(namespace_id, &last, LAST_COUNT_AGE_MAX, now) {
                        return Ok(count);
                    }
                }
            }
            TURN_PAUSES.wait(pause, &self.ambient).await;
        }
        Err(Error::Unavailable("the players are being counted for the first time in a while".to_owned()))
    }

    /// A stored count that is younger than `age_max`. The instance caches another instance's count like its
    /// own.
    fn usable(
        &self,
        namespace_id: &NamespaceId,
        kept: &KeptCount,
        age_max: Duration,
        now: Timestamp,
    ) -> Option<PlayerStatistics> {
        let counted_at = kept.counted_at.filter(|at| now.since(*at) < age_max)?;
        let count: PlayerStatistics = serde_json::from_str(&kept.json).ok()?;
        self.counts.put(namespace_id.clone(), count.clone(), counted_at);
        Some(count)
    }

    async fn count_for_all(
        &self,
        settings: &Settings,
        claimed_at: Timestamp,
    ) -> Result<PlayerStatistics, Error> {
        let namespace_id = &settings.namespace.namespace_id;
        let count = self.count(settings).await?;
        // The time after the count: a slow count must not start again immediately.
        let counted_at = self.ambient.now();
        let json = serde_json::to_string(&count).map_err(|error| Error::Bug(error.to_string()))?;
        self.store.keep_count(namespace_id, &json, claimed_at, counted_at).await?;
        self.counts.put(namespace_id.clone(), count.clone(), counted_at);
        Ok(count)
    }

    async fn count(&self, settings: &Settings) -> Result<PlayerStatistics, Error> {
        let now = self.ambient.now();
        let servers = servers_of(&self.store, &settings.game, &settings.namespace.namespace_id).await?;
        let servers = servers.into_iter().filter(|server| server.used > 0);
        let ids = stream::iter(servers).map(|server| async move {
            let ids = ids_on(&self.store, &server.server).await?;
            Ok::<_, Error>(stream::iter(
                ids.chunks(LOBBIES_AT_ONCE).map(<[_]>::to_vec).map(Ok).collect::<Vec<_>>(),
            ))
        });
        // This many reads are under way, whatever the number of servers.
        let batches = ids.buffer_unordered(QUERIES_AT_ONCE).try_flatten();
        let tallies = batches.map_ok(|ids| async move { self.tally(&ids, now).await });
        let mut tallies = tallies.try_buffer_unordered(QUERIES_AT_ONCE);
        let mut statistics = PlayerStatistics::default();
        while let Some(tally) = tallies.try_next().await? {
            for (pool, players) in tally {
                statistics.player_count += players;
                let mode = statistics.game_modes.entry(pool.game_mode).or_default();
                mode.player_count += players;
                mode.regions.entry(pool.region_id).or_default().player_count += players;
            }
        }
        Ok(statistics)
    }

    /// Seats held in lobbies, by pool.
    async fn tally(&self, ids: &[LobbyId], now: Timestamp) -> Result<BTreeMap<Pool, u64>, Error> {
        let mut tally = BTreeMap::new();
        for lobby in self.store.lobbies(ids).await? {
            if lobby.stage != Stage::Ended && lobby.lease_until > now {
                let held = u64::try_from(lobby.held_seats(now)).unwrap_or(u64::MAX);
                *tally.entry(lobby.pool).or_default() += held;
            }
        }
        Ok(tally)
    }
}

impl List {
    fn states(&self) -> MutexGuard<'_, HashMap<LobbyId, Box<RawValue>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

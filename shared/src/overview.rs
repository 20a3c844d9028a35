//! A namespace's list of lobbies, and its number of players.
//!
//! No table is read whole. The list comes from the index of candidates, at most 500 lobbies, so closed ones
//! are not in it (decision 43). One instance counts the statistics for all, from the lobbies of each game
//! server, at most every five seconds (decision 42).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
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
    store::{
        client::Store,
        listing::{LOBBIES_AT_ONCE, QUERIES_AT_ONCE, ids_on, servers_of},
        lobby_data::Part,
        statistics::{COUNT_AGE_MAX, COUNTING_MAX, KeptCount, Turn},
    },
    wire::{LobbyInfo, PlayerStatistics},
};

/// The most lobbies of a list.
pub const LISTED_MAX: usize = 500;
/// The most bytes of all states in a list, each as part of a JSON string: so a function hands over its
/// response, of at most 6 MB.
const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lists kept: with states they may have 4 MB each, and a function 128.
const LISTS_MAX: usize = 8;
/// Counts kept.
const COUNTS_MAX: usize = 256;
/// How old a list may be.
const LIST_AGE_MAX: Duration = Duration::from_secs(5);
/// States read at once: at most 3.2 MB.
const STATES_AT_ONCE: usize = 50;

/// How old the last count may be while another instance counts: its own maximum, and the longest time that a
/// count takes.
const LAST_COUNT_AGE_MAX: Duration = Duration::from_secs(COUNT_AGE_MAX.as_secs() + COUNTING_MAX.as_secs());
/// Pauses while waiting for a count when there is none: three seconds in all.
const TURN_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(100));
const TURN_PAUSES_MAX: u32 = 5;

/// A list of lobbies.
#[derive(Debug)]
pub struct List {
    /// The lobbies, those with a free seat first.
    pub lobbies: Vec<LobbyInfo>,
    /// Whether there are more than it may have.
    pub is_truncated: bool,
}

/// Reads overviews through a bounded cache.
#[derive(Debug)]
pub struct Overview {
    store: Store,
    ambient: Ambient,
    lists: TimedMap<(NamespaceId, VersionId, bool), Arc<List>>,
    counts: TimedMap<NamespaceId, PlayerStatistics>,
}

impl Overview {
    /// An overview of `store` with empty caches.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, lists: TimedMap::new(LISTS_MAX), counts: TimedMap::new(COUNTS_MAX) }
    }

    /// The public, open lobbies of the namespace's current version in listable modes, those with free seats
    /// first, at most [`LISTED_MAX`]; with their states if requested, up to 4 MB together. At most 5 s old.
    ///
    /// One query for each listable mode and region, 0.5 read units for each lobby, and 0.5 for each 4 KB of
    /// state.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies(&self, settings: &Settings, with_states: bool) -> Result<Arc<List>, Error> {
        let now = self.ambient.now();
        let key = (settings.namespace.namespace_id.clone(), settings.version.version_id.clone(), with_states);
        if let Some(list) = self.lists.get(&key, LIST_AGE_MAX, now) {
            return Ok(list);
        }
        let list = Arc::new(self.read_lobbies(settings, with_states, now).await?);
        self.lists.put(key, Arc::clone(&list), now);
        Ok(list)
    }

    async fn read_lobbies(
        &self,
        settings: &Settings,
        with_states: bool,
        now: Timestamp,
    ) -> Result<List, Error> {
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
        let mut shown: Vec<Lobby> = ids.iter().filter_map(|id| lobbies.remove(id)).collect();
        // The index shows a lobby like one with a free seat from the time at which the reservation of a seat
        // would have lapsed, until a find notices that its player has connected.
        shown.sort_by_key(|lobby| lobby.free_seats(now) == 0);
        let mut states = if with_states { self.states(&shown).await? } else { HashMap::new() };
        let info = |lobby: Lobby| {
            let mode = modes.get(&lobby.pool.game_mode);
            LobbyInfo {
                total_player_count: u32::try_from(lobby.held_seats(now)).unwrap_or(u32::MAX),
                max_players_normal: lobby.max_players,
                max_players_direct: lobby.max_players_direct,
                max_players_party: mode.and_then(|mode| mode.max_players_party).unwrap_or(lobby.max_players),
                state: states.remove(&lobby.lobby_id),
                region_id: lobby.pool.region_id,
                game_mode_id: lobby.pool.game_mode,
                lobby_id: lobby.lobby_id,
            }
        };
        Ok(List { lobbies: shown.into_iter().map(info).collect(), is_truncated })
    }

    /// The states of the first lobbies, as many as fit; `null` for lobbies that never set one.
    async fn states(&self, lobbies: &[Lobby]) -> Result<HashMap<LobbyId, Box<RawValue>>, Error> {
        let mut states = HashMap::new();
        let mut bytes = 0;
        for lobbies in lobbies.chunks(STATES_AT_ONCE) {
            let having = lobbies.iter().filter(|lobby| lobby.has_state);
            let ids: Vec<_> = having.map(|lobby| lobby.lobby_id.clone()).collect();
            let mut read: HashMap<_, _> =
                self.store.lobby_data(&ids, Part::State).await?.into_iter().collect();
            for lobby in lobbies {
                let state = read.remove(&lobby.lobby_id).unwrap_or_else(|| RawValue::NULL.to_owned());
                bytes += len_in_a_string(state.get());
                if bytes > STATE_BYTES_MAX {
                    return Ok(states);
                }
                states.insert(lobby.lobby_id.clone(), state);
            }
        }
        Ok(states)
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

/// The length of JSON text as part of a JSON string, in bytes: quotes, backslashes and the whitespace between
/// values take two each.
fn len_in_a_string(json: &str) -> usize {
    json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | ..b' ')).count()
}

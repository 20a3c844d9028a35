//! Searches for capacity without result, which instances share in the ledger (decision 28).

use std::{collections::HashMap, mem, time::Duration};

use crate::{
    base::{
        ambient::{Ambient, Timestamp},
        cache::BoundedMap,
    },
    matchmaking::{limits::LEARNT_AGE_MAX, outcomes::NoCapacity, search::Search},
    models::{
        errors::Error,
        ids::{NamespaceId, ServerKey},
        lobby::Lobby,
        namespace::Namespace,
        pool::Pool,
        server::Server,
        shortage::Obstacles,
    },
    store::{
        client::Store,
        failed_searches::{BELIEVED_FOR, FailedSearch, SearchKey},
    },
};

/// How long an instance that knew of a search in vain expects another: it then reads the other instances'
/// searches before it creates, which costs two calls where capacity is back.
const EXPECTED_FOR: Duration = Duration::from_secs(10);

/// What a search is for: capacity, for a client that may or may not displace lobbies that nobody has
/// connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Need {
    pub(super) capacity: NoCapacity,
    pub(super) may_displace: bool,
}

/// The searches that an instance knows, and shares. One in vain that might displace lobbies counts for both
/// kinds of clients, another for those alone that may not.
#[derive(Debug)]
pub(super) struct Searches {
    store: Store,
    ambient: Ambient,
    /// Until when a search without result is believed, and the obstacles at the game servers.
    failed: BoundedMap<(Pool, Need), (Timestamp, Obstacles)>,
    /// Namespaces seen at their limit of lobbies by clients that may displace others or not, with that limit
    /// and until when it is believed.
    full: BoundedMap<(NamespaceId, bool), (u32, Timestamp)>,
    /// When it was this instance's turn to search.
    turns: BoundedMap<SearchKey, Timestamp>,
    /// Lobbies that the last search would have displaced next.
    unused: BoundedMap<NamespaceId, (Timestamp, Unused)>,
}

/// Lobbies that nobody has connected to, the first to make room last, and the servers that ran them.
type Unused = (Vec<Lobby>, HashMap<ServerKey, Server>);

/// The key of the search for what `need` says.
pub(super) fn key_of(search: &Search, need: Need) -> SearchKey {
    let wanted = &search.criteria.new_lobby.pool;
    let key = match need.capacity {
        NoCapacity::AtCap => SearchKey::below_cap(&wanted.namespace_id),
        NoCapacity::NoServer => {
            SearchKey::on_a_server(&wanted.namespace_id, &wanted.region_id, &wanted.game_mode)
        }
    };
    if need.may_displace { key } else { key.without_displacing() }
}

impl Searches {
    pub(super) fn new(store: Store, ambient: Ambient) -> Self {
        let (failed, full) = (BoundedMap::default(), BoundedMap::default());
        let (turns, unused) = (BoundedMap::default(), BoundedMap::default());
        Self { store, ambient, failed, full, turns, unused }
    }

    /// Another instance's search without result, unless it is this one's turn to search.
    pub(super) async fn others_failed(
        &self,
        search: &Search,
        need: Need,
    ) -> Result<Option<FailedSearch>, Error> {
        let key = key_of(search, need);
        let Some(last) = self.store.last_failed_search(&key).await? else { return Ok(None) };
        Ok(if self.is_believed(search, &key, &last).await? { Some(last) } else { None })
    }

    /// Whether the `last` search without result is believed: not when it is this instance's turn to search.
    /// One write unit when it ages.
    pub(super) async fn is_believed(
        &self,
        search: &Search,
        key: &SearchKey,
        last: &FailedSearch,
    ) -> Result<bool, Error> {
        let now = self.ambient.now();
        if last.lobby_count_max != search.settings.namespace.lobby_count_max || now >= last.believed_until() {
            return Ok(false);
        }
        if now < last.ages_at() {
            return Ok(true);
        }
        if self.has_turn(key, now) {
            return Ok(false);
        }
        let is_our_turn = self.store.claims_search(key, now).await?;
        if is_our_turn {
            self.note_turn(key, now);
        }
        Ok(!is_our_turn)
    }

    /// Makes a search without result known to the other instances.
    pub(super) async fn publish_failed(
        &self,
        search: &Search,
        need: Need,
        obstacles: Obstacles,
    ) -> Result<FailedSearch, Error> {
        let lobby_count_max = search.settings.namespace.lobby_count_max;
        let failed = FailedSearch { found_at: self.ambient.now(), lobby_count_max, obstacles };
        self.store.publish_failed_search(&key_of(search, need), &failed).await?;
        Ok(failed)
    }

    /// Believes a search without result, for a little less than the longest time allowed: one of many
    /// instances searches again before.
    pub(super) fn believe(&self, search: &Search, need: Need, failed: FailedSearch) {
        let until = failed.found_at + self.ambient.jittered(BELIEVED_FOR);
        let wanted = &search.criteria.new_lobby.pool;
        match need.capacity {
            NoCapacity::AtCap => {
                let (namespace_id, cap) = (&wanted.namespace_id, failed.lobby_count_max);
                self.remember_full(namespace_id, need.may_displace, cap, until);
            }
            NoCapacity::NoServer => self.remember_failed(wanted, need, failed.obstacles, until),
        }
    }

    /// The obstacles of the last search for capacity for a lobby of `wanted`, if it had no result a moment
    /// ago.
    pub(super) fn failed_search(&self, wanted: &Pool, need: Need, now: Timestamp) -> Option<Obstacles> {
        let believed =
            |(until, obstacles): &mut (Timestamp, Obstacles)| (now < *until).then(|| obstacles.clone());
        let of = |need| self.failed.with(&(wanted.whole(), need), believed).flatten();
        of(Need { may_displace: true, ..need }).or_else(|| if need.may_displace { None } else { of(need) })
    }

    /// Whether a search for one of the `needed` was known to be in vain within [`EXPECTED_FOR`].
    pub(super) fn failed_lately(&self, wanted: &Pool, needed: &[NoCapacity], now: Timestamp) -> bool {
        let is_recent = |until: Timestamp| now.since(until) < EXPECTED_FOR;
        let failed = |capacity, may_displace| match capacity {
            NoCapacity::AtCap => {
                let key = (wanted.namespace_id.clone(), may_displace);
                self.full.with(&key, |(_, until)| is_recent(*until))
            }
            NoCapacity::NoServer => {
                let key = (wanted.whole(), Need { capacity, may_displace });
                self.failed.with(&key, |(until, _)| is_recent(*until))
            }
        };
        needed.iter().any(|capacity| {
            [true, false].into_iter().any(|may_displace| failed(*capacity, may_displace) == Some(true))
        })
    }

    /// Whether it was this instance's turn to search less than a second ago.
    pub(super) fn has_turn(&self, key: &SearchKey, now: Timestamp) -> bool {
        self.turns.with(key, |at| now.since(*at) < BELIEVED_FOR).unwrap_or(false)
    }

    fn note_turn(&self, key: &SearchKey, now: Timestamp) {
        self.turns.insert(key.clone(), now, now);
    }

    pub(super) fn remember_failed(&self, wanted: &Pool, need: Need, obstacles: Obstacles, until: Timestamp) {
        self.failed.insert((wanted.whole(), need), until, (until, obstacles));
    }

    /// Whether the namespace was seen to hold as many lobbies as it may within the last second, by a client
    /// that might displace some or not: then a refused find need not read all servers again.
    pub(super) fn is_full(&self, namespace: &Namespace, may_displace: bool, now: Timestamp) -> bool {
        let is_full = |(cap, until): &mut (u32, Timestamp)| *cap == namespace.lobby_count_max && now < *until;
        let key = (namespace.namespace_id.clone(), may_displace);
        self.full.with(&key, is_full).unwrap_or(false)
    }

    /// Notes that the namespace holds its `cap` of lobbies, which is believed `until` then, unless this
    /// instance ends one.
    fn remember_full(&self, namespace_id: &NamespaceId, may_displace: bool, cap: u32, until: Timestamp) {
        self.full.insert((namespace_id.clone(), may_displace), until, (cap, until));
    }

    /// Keeps the lobbies that the next search may displace.
    pub(super) fn keep_unused(&self, namespace_id: &NamespaceId, unused: Unused, now: Timestamp) {
        self.unused.insert(namespace_id.clone(), now, (now, unused));
    }

    /// Takes them.
    pub(super) fn take_unused(&self, namespace_id: &NamespaceId, now: Timestamp) -> Unused {
        let take = |(kept_at, unused): &mut (Timestamp, Unused)| {
            let unused = mem::take(unused);
            if now.since(*kept_at) < LEARNT_AGE_MAX { unused } else { Unused::default() }
        };
        self.unused.with(namespace_id, take).unwrap_or_default()
    }

    pub(super) fn forget_full(&self, namespace_id: &NamespaceId) {
        for may_displace in [false, true] {
            self.full.remove(&(namespace_id.clone(), may_displace));
        }
    }
}

//! Searches for capacity without result.

use std::{mem, time::Duration};

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    matchmaking::{limits::LEARNT_AGE_MAX, outcomes::NoCapacity},
    models::{ids::NamespaceId, lobby::Lobby, namespace::Namespace, pool::Pool, shortage::Obstacles},
    store::failed_searches::{BELIEVED_FOR, SearchKey},
};

/// How long an instance that knew of a search in vain expects another: it then reads the other instances'
/// searches before it creates, which costs two calls where capacity is back.
const EXPECTED_FOR: Duration = Duration::from_secs(10);

/// What a search is for: capacity, for a client that may or may not displace lobbies that nobody has
/// connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::matchmaking) struct Need {
    pub(in crate::matchmaking) capacity: NoCapacity,
    pub(in crate::matchmaking) may_displace: bool,
}

/// What an instance knows of searches. One in vain that might displace lobbies counts for both kinds of
/// clients, another for those alone that may not.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Searches {
    /// Until when a search without result is believed, and the obstacles at the game servers.
    failed: BoundedMap<(Pool, Need), (Timestamp, Obstacles)>,
    /// Namespaces seen at their limit of lobbies by clients that may displace others or not, with that limit
    /// and until when it is believed.
    full: BoundedMap<(NamespaceId, bool), (u32, Timestamp)>,
    /// When it was this instance's turn to search.
    turns: BoundedMap<SearchKey, Timestamp>,
    /// Lobbies that the last search would have displaced next.
    unused: BoundedMap<NamespaceId, (Timestamp, Vec<Lobby>)>,
}

impl Searches {
    /// The obstacles of the last search for capacity for a lobby of `wanted`, if it had no result a moment
    /// ago.
    pub(in crate::matchmaking) fn failed_search(
        &self,
        wanted: &Pool,
        need: Need,
        now: Timestamp,
    ) -> Option<Obstacles> {
        let believed =
            |(until, obstacles): &mut (Timestamp, Obstacles)| (now < *until).then(|| obstacles.clone());
        let of = |need| self.failed.with(&(wanted.whole(), need), believed).flatten();
        of(Need { may_displace: true, ..need }).or_else(|| if need.may_displace { None } else { of(need) })
    }

    /// Whether such a search was known to be in vain within [`EXPECTED_FOR`].
    pub(in crate::matchmaking) fn failed_lately(&self, wanted: &Pool, need: Need, now: Timestamp) -> bool {
        let is_recent = |until: Timestamp| now.since(until) < EXPECTED_FOR;
        let is_known = match need.capacity {
            NoCapacity::AtCap => {
                let key = (wanted.namespace_id.clone(), need.may_displace);
                self.full.with(&key, |(_, until)| is_recent(*until))
            }
            NoCapacity::NoServer => self.failed.with(&(wanted.whole(), need), |(until, _)| is_recent(*until)),
        };
        is_known.unwrap_or(false)
    }

    /// Whether it was this instance's turn to search less than a second ago.
    pub(in crate::matchmaking) fn has_turn(&self, key: &SearchKey, now: Timestamp) -> bool {
        self.turns.with(key, |at| now.since(*at) < BELIEVED_FOR).unwrap_or(false)
    }

    pub(in crate::matchmaking) fn note_turn(&self, key: &SearchKey, now: Timestamp) {
        self.turns.insert(key.clone(), now, now);
    }

    pub(in crate::matchmaking) fn remember_failed(
        &self,
        wanted: &Pool,
        need: Need,
        obstacles: Obstacles,
        until: Timestamp,
    ) {
        self.failed.insert((wanted.whole(), need), until, (until, obstacles));
    }

    /// Whether the namespace was seen to hold as many lobbies as it may within the last second, by a client
    /// that might displace some or not: then a refused find need not read all servers again.
    pub(in crate::matchmaking) fn is_full(
        &self,
        namespace: &Namespace,
        may_displace: bool,
        now: Timestamp,
    ) -> bool {
        let is_full = |(cap, until): &mut (u32, Timestamp)| *cap == namespace.lobby_count_max && now < *until;
        let key = (namespace.namespace_id.clone(), may_displace);
        self.full.with(&key, is_full).unwrap_or(false)
    }

    /// Notes that the namespace holds its `cap` of lobbies, which is believed `until` then, unless this
    /// instance ends one.
    pub(in crate::matchmaking) fn remember_full(
        &self,
        namespace_id: &NamespaceId,
        may_displace: bool,
        cap: u32,
        until: Timestamp,
    ) {
        self.full.insert((namespace_id.clone(), may_displace), until, (cap, until));
    }

    /// Keeps the lobbies that the next search may displace, the first one last.
    pub(in crate::matchmaking) fn keep_unused(
        &self,
        namespace_id: &NamespaceId,
        unused: Vec<Lobby>,
        now: Timestamp,
    ) {
        self.unused.insert(namespace_id.clone(), now, (now, unused));
    }

    /// Takes them.
    pub(in crate::matchmaking) fn take_unused(
        &self,
        namespace_id: &NamespaceId,
        now: Timestamp,
    ) -> Vec<Lobby> {
        let take = |(kept_at, unused): &mut (Timestamp, Vec<Lobby>)| {
            let unused = mem::take(unused);
            if now.since(*kept_at) < LEARNT_AGE_MAX { unused } else { Vec::new() }
        };
        self.unused.with(namespace_id, take).unwrap_or_default()
    }

    pub(in crate::matchmaking) fn forget_full(&self, namespace_id: &NamespaceId) {
        for may_displace in [false, true] {
            self.full.remove(&(namespace_id.clone(), may_displace));
        }
    }
}

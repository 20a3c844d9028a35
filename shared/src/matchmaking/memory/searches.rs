//! Searches for capacity without result.

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    matchmaking::outcomes::NoCapacity,
    models::{ids::NamespaceId, namespace::Namespace, pool::Pool, shortage::Obstacles},
};

/// What an instance knows of searches.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Searches {
    /// Until when a search without result is believed, and the obstacles at the game servers.
    failed: BoundedMap<(Pool, NoCapacity), (Timestamp, Obstacles)>,
    /// Namespaces seen at their limit of lobbies, with that limit and until when it is believed.
    full: BoundedMap<NamespaceId, (u32, Timestamp)>,
}

impl Searches {
    /// The obstacles of the last search for capacity for a lobby of `wanted`, if it had no result a moment
    /// ago.
    pub(in crate::matchmaking) fn failed_search(
        &self,
        wanted: &Pool,
        needed: NoCapacity,
        now: Timestamp,
    ) -> Option<Obstacles> {
        let believed =
            |(until, obstacles): &mut (Timestamp, Obstacles)| (now < *until).then(|| obstacles.clone());
        self.failed.with(&(wanted.whole(), needed), believed).flatten()
    }

    pub(in crate::matchmaking) fn remember_failed(
        &self,
        wanted: &Pool,
        needed: NoCapacity,
        obstacles: Obstacles,
        until: Timestamp,
    ) {
        self.failed.insert((wanted.whole(), needed), until, (until, obstacles));
    }

    /// Whether the namespace was seen to hold as many lobbies as it may within the last second: then a
    /// refused find need not read all servers again.
    pub(in crate::matchmaking) fn is_full(&self, namespace: &Namespace, now: Timestamp) -> bool {
        let is_full = |(cap, until): &mut (u32, Timestamp)| *cap == namespace.lobby_count_max && now < *until;
        self.full.with(&namespace.namespace_id, is_full).unwrap_or(false)
    }

    /// Notes that the namespace holds its `cap` of lobbies, which is believed `until` then, unless this
    /// instance ends one.
    pub(in crate::matchmaking) fn remember_full(
        &self,
        namespace_id: &NamespaceId,
        cap: u32,
        until: Timestamp,
    ) {
        self.full.insert(namespace_id.clone(), until, (cap, until));
    }

    pub(in crate::matchmaking) fn forget_full(&self, namespace_id: &NamespaceId) {
        self.full.remove(namespace_id);
    }
}

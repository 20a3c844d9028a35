//! Searches for capacity that were in vain.

use crate::{
    base::ambient::Timestamp,
    matchmaking::{memory::kept::Kept, outcomes::NoCapacity},
    models::{ids::NamespaceId, pool::Pool},
    wire::explanation::Obstacles,
};

/// What an instance knows of searches.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Searches {
    /// Until when a search in vain is believed, and what stood against the game servers.
    vain: Kept<(Pool, NoCapacity), (Timestamp, Obstacles)>,
    /// Namespaces that were seen to hold as many lobbies as they may, with that limit and until when it is
    /// believed.
    full: Kept<NamespaceId, (u32, Timestamp)>,
}

impl Searches {
    /// Whether a search for a lobby that may end, to make room for one of `wanted`, was in vain a moment ago;
    /// and what stood against its game servers.
    pub(in crate::matchmaking) fn failed_search(
        &self,
        wanted: &Pool,
        needed: NoCapacity,
        now: Timestamp,
    ) -> Option<Obstacles> {
        let believed =
            |(until, obstacles): &mut (Timestamp, Obstacles)| (now < *until).then(|| obstacles.clone());
        self.vain.with(&(wanted.whole(), needed), believed).flatten()
    }

    pub(in crate::matchmaking) fn remember_failed(
        &self,
        wanted: &Pool,
        needed: NoCapacity,
        obstacles: Obstacles,
        until: Timestamp,
    ) {
        self.vain.insert((wanted.whole(), needed), (until, obstacles));
    }

    /// Whether the namespace was seen to hold its `cap` of lobbies within the last second, so that a refused
    /// find need not read all of its servers again.
    pub(in crate::matchmaking) fn is_full(
        &self,
        namespace_id: &NamespaceId,
        cap: u32,
        now: Timestamp,
    ) -> bool {
        self.full.with(namespace_id, |(seen, until)| *seen == cap && now < *until).unwrap_or(false)
    }

    /// The namespace holds its `cap` of lobbies; believed `until` then, unless this instance ends one of
    /// them.
    pub(in crate::matchmaking) fn remember_full(
        &self,
        namespace_id: &NamespaceId,
        cap: u32,
        until: Timestamp,
    ) {
        self.full.insert(namespace_id.clone(), (cap, until));
    }

    pub(in crate::matchmaking) fn forget_full(&self, namespace_id: &NamespaceId) {
        self.full.remove(namespace_id);
    }
}

//! Whether a namespace's lobbies run short, so that seats are for clients whose players connect (decision
//! 65).

use std::time::Duration;

use crate::{
    auth::settings::Settings,
    base::{
        ambient::{Ambient, Timestamp},
        cache::TimedMap,
    },
    models::{errors::Error, ids::NamespaceId},
    rules::capacity::lobbies_of,
    store::{client::Store, listing::servers_of},
};

/// Lobbies run short from this fraction of `lobby_count_max` on: what is left is for the others.
const SHORT_FROM: u32 = 2;
/// How old the number of lobbies may be.
const COUNT_AGE_MAX: Duration = Duration::from_secs(2);
/// How long a namespace that was full is taken for one that may be full again.
const FULL_FOR: Duration = Duration::from_secs(10);
/// Namespaces remembered.
const NAMESPACES_MAX: usize = 256;

/// What an instance knows of namespaces that run short of lobbies.
#[derive(Debug)]
pub(super) struct Pressure {
    counts: TimedMap<NamespaceId, bool>,
    full: TimedMap<NamespaceId, ()>,
}

impl Pressure {
    pub(super) fn new() -> Self {
        Self { counts: TimedMap::new(NAMESPACES_MAX), full: TimedMap::new(NAMESPACES_MAX) }
    }

    /// Whether the namespace of `settings` runs half of the lobbies that it may hold, at most two seconds
    /// ago. One consistent read unit; where as many are allotted to game servers, a query of each region.
    pub(super) async fn is_on(
        &self,
        settings: &Settings,
        store: &Store,
        ambient: &Ambient,
    ) -> Result<bool, Error> {
        let (now, namespace) = (ambient.now(), &settings.namespace);
        if let Some(is_on) = self.counts.get(&namespace.namespace_id, COUNT_AGE_MAX, now) {
            return Ok(is_on);
        }
        let enough = (namespace.lobby_count_max / SHORT_FROM).max(1);
        // A server runs no more than is allotted to it, and keeps that after its lobbies ended.
        let is_on = store.allotted_lobbies(&namespace.namespace_id).await? >= enough
            && lobbies_of(&servers_of(store, &settings.game, &namespace.namespace_id).await?) >= enough;
        self.counts.put(namespace.namespace_id.clone(), is_on, now);
        Ok(is_on)
    }

    /// Notes that the namespace is full of lobbies none of which may end.
    pub(super) fn note_full(&self, namespace_id: &NamespaceId, now: Timestamp) {
        self.full.put(namespace_id.clone(), (), now);
    }

    /// Whether that was noted a moment ago.
    pub(super) fn was_full(&self, namespace_id: &NamespaceId, now: Timestamp) -> bool {
        self.full.get(namespace_id, FULL_FOR, now).is_some()
    }
}

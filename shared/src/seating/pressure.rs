//! Whether a namespace's lobbies run short, so that seats are for clients whose players connect (decision
//! 65).

use std::time::Duration;

use crate::{
    auth::settings::Settings,
    base::{ambient::Ambient, cache::TimedMap},
    models::{errors::Error, ids::NamespaceId},
    rules::capacity::lobbies_of,
    store::{client::Store, listing::servers_of},
};

/// Lobbies run short from this fraction of `lobby_count_max` on: what is left is for the others.
const SHORT_FROM: u32 = 2;
/// How old the number of lobbies may be.
const COUNT_AGE_MAX: Duration = Duration::from_secs(2);
/// Namespaces remembered.
const NAMESPACES_MAX: usize = 256;

/// What an instance knows of namespaces that run short of lobbies.
#[derive(Debug)]
pub(super) struct Pressure {
    counts: TimedMap<NamespaceId, bool>,
}

impl Pressure {
    pub(super) fn new() -> Self {
        Self { counts: TimedMap::new(NAMESPACES_MAX) }
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
}

//! The matchmaker of one function instance, and what it remembers between requests.

use std::sync::Arc;

use crate::{
    auth::settings::SettingsCache,
    base::ambient::Ambient,
    matchmaking::memory::{bursts::Bursts, pools::Pools, searches::Searches, servers::Servers},
    store::client::Store,
};

/// The matchmaker of one function instance.
#[derive(Debug)]
pub struct Matchmaker {
    pub(super) store: Store,
    pub(super) settings: Arc<SettingsCache>,
    pub(super) ambient: Ambient,
    pub(super) pools: Pools,
    pub(super) bursts: Bursts,
    pub(super) servers: Servers,
    pub(super) searches: Searches,
}

impl Matchmaker {
    /// A matchmaker with empty memory. Cached servers may be as old as cached settings.
    #[must_use]
    pub fn new(store: Store, settings: Arc<SettingsCache>, ambient: Ambient) -> Self {
        Self {
            store,
            settings,
            ambient,
            pools: Pools::default(),
            bursts: Bursts::default(),
            servers: Servers::default(),
            searches: Searches::default(),
        }
    }
}

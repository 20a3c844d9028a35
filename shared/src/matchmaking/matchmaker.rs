//! The matchmaker of one function instance, and what it remembers between requests.

use std::sync::Arc;

use crate::{
    auth::settings::SettingsCache,
    base::ambient::Ambient,
    matchmaking::{
        memory::{bursts::Bursts, pools::Pools, scans::Scans},
        searches::Searches,
        servers::Servers,
    },
    models::{errors::Error, pool::Pool},
    store::client::Store,
};

/// The matchmaker of one function instance.
#[derive(Debug)]
pub struct Matchmaker {
    pub(super) store: Store,
    pub(super) settings: Arc<SettingsCache>,
    pub(super) ambient: Ambient,
    pub(super) pools: Pools,
    pub(super) scans: Scans,
    pub(super) bursts: Bursts,
    pub(super) servers: Servers,
    pub(super) searches: Searches,
}

impl Matchmaker {
    /// A matchmaker with empty memory. Cached servers may be as old as cached settings.
    #[must_use]
    pub fn new(store: Store, settings: Arc<SettingsCache>, ambient: Ambient) -> Self {
        Self {
            pools: Pools::default(),
            scans: Scans::default(),
            bursts: Bursts::default(),
            servers: Servers::new(store.clone(), ambient.clone(), settings.age_max()),
            searches: Searches::new(store.clone(), ambient.clone()),
            store,
            settings,
            ambient,
        }
    }

    /// Reads the servers that lobbies of `pool` can be placed on, as a function's first creation does.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn know_servers(&self, pool: &Pool) -> Result<(), Error> {
        self.servers.learn(&pool.placement(None), &pool.game_mode, None).await.map(|_has_place| ())
    }
}

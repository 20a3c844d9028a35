//! What every function does before its first request: log, read its environment, open its connection.

use std::sync::Arc;

use crate::{
    auth::{
        cloud::CloudAuth,
        keys::TokenKeys,
        matchmaker::MatchmakerAuth,
        settings::{SETTINGS_AGE_MAX, SettingsCache},
    },
    base::{ambient::Ambient, log},
    cloud::issuing::Issuer,
    function::config::{Environment, InvalidConfig},
    matchmaking::matchmaker::Matchmaker,
    screening::check::Screening,
    store::client::Store,
};

pub mod config;
pub mod metrics;
pub mod operation;

/// A function instance that is ready for its operation.
#[derive(Debug)]
pub struct Function {
    /// Its environment.
    pub environment: Environment,
    /// Its clock and randomness.
    pub ambient: Ambient,
    /// The tables that it is given.
    pub store: Store,
    /// The keys that tokens are signed with.
    pub keys: Arc<TokenKeys>,
    settings: Arc<SettingsCache>,
}

impl Function {
    /// Starts the process's function: logs as Lambda files it, connects to DynamoDB.
    ///
    /// # Errors
    /// [`InvalidConfig`].
    pub async fn start() -> Result<Self, InvalidConfig> {
        log::log_json();
        let (environment, ambient) = (Environment::of_process(), Ambient::system());
        let (store, keys) = (environment.store()?, environment.token_keys()?);
        if let Err(error) = store.open_connection().await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(cause, "the connection to DynamoDB could not be opened during init");
        }
        let settings = Arc::new(SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
        Ok(Self { environment, ambient, store, keys, settings })
    }

    /// The rights of cloud operations.
    #[must_use]
    pub fn cloud_auth(&self) -> CloudAuth {
        CloudAuth::new(self.store.clone(), Arc::clone(&self.keys), self.ambient.clone())
    }

    /// The issuer of tokens.
    #[must_use]
    pub fn issuer(&self) -> Issuer {
        Issuer::new(self.store.clone(), Arc::clone(&self.keys), self.ambient.clone())
    }

    /// The rights of matchmaker operations.
    #[must_use]
    pub fn matchmaker_auth(&self) -> MatchmakerAuth {
        MatchmakerAuth::new(Arc::clone(&self.settings), Arc::clone(&self.keys), self.ambient.clone())
    }

    /// A matchmaker that remembers nothing yet.
    #[must_use]
    pub fn matchmaker(&self) -> Arc<Matchmaker> {
        let settings = Arc::clone(&self.settings);
        Arc::new(Matchmaker::new(self.store.clone(), settings, self.ambient.clone()))
    }

    /// What decides whom captcha providers and studios' backends let in.
    ///
    /// # Errors
    /// As [`Environment::outside`].
    pub fn screening(&self) -> Result<Arc<Screening>, InvalidConfig> {
        let (store, keys) = (self.store.clone(), Arc::clone(&self.keys));
        let outside = self.environment.outside()?;
        Ok(Arc::new(Screening::new(store, keys, self.ambient.clone(), outside)))
    }

    /// `MUSTER_EDGE_SECRET`: what the edge proves itself with, if there is one.
    #[must_use]
    pub fn edge_secret(&self) -> Option<String> {
        self.environment.optional("MUSTER_EDGE_SECRET")
    }
}

//! The parts of an operation: in Lambda by the environment of its process, elsewhere over any store.
//!
//! Parts that an operation does not use are neither made nor linked into its binary: `get-bootstrap` has no
//! client of DynamoDB.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::{
    auth::{
        cloud::CloudAuth,
        keys::TokenKeys,
        matchmaker::MatchmakerAuth,
        settings::{SETTINGS_AGE_MAX, SettingsCache},
    },
    base::ambient::Ambient,
    cloud::issuing::Issuer,
    function::config::{Environment, InvalidConfig},
    matchmaking::matchmaker::Matchmaker,
    outside::endpoints::Outside,
    screening::admission::Screening,
    seating::entrance::Seating,
    store::client::Store,
};

/// One instance of a function. Its operation gets every part from here, and each is made once.
pub struct Instance {
    environment: Environment,
    ambient: Ambient,
    store: OnceLock<Store>,
    keys: OnceLock<Arc<TokenKeys>>,
    settings: OnceLock<Arc<SettingsCache>>,
    outside: Option<Outside>,
    /// The future that opens the connection of the environment's store.
    opening: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Instance {
    /// An instance as `environment` describes it.
    #[must_use]
    pub fn of(environment: Environment) -> Self {
        Self {
            environment,
            ambient: Ambient::system(),
            store: OnceLock::new(),
            keys: OnceLock::new(),
            settings: OnceLock::new(),
            outside: None,
            opening: Mutex::default(),
        }
    }

    /// An instance over `store`, whose tokens are signed with `keys`.
    #[must_use]
    pub fn over(store: Store, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        let made = Self::of(Environment::default());
        Self { ambient, store: store.into(), keys: keys.into(), ..made }
    }

    /// The same with an `environment`, whose tables and keys are ignored.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// The same with the captcha providers and backends `outside`.
    #[must_use]
    pub fn with_outside(self, outside: Outside) -> Self {
        Self { outside: Some(outside), ..self }
    }

    /// The same with `settings`, whose cache the caller can clear.
    #[must_use]
    pub fn with_settings(self, settings: Arc<SettingsCache>) -> Self {
        Self { settings: settings.into(), ..self }
    }

    /// Opens the connection to DynamoDB, if the operation needs one. Within Lambda's init this costs nothing.
    pub async fn connect(&self) {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opening) = opening {
            opening.await;
        }
    }

    /// Its environment.
    #[must_use]
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Its clock and randomness.
    #[must_use]
    pub fn ambient(&self) -> Ambient {
        self.ambient.clone()
    }

    /// Its store.
    ///
    /// # Errors
    /// As [`Environment::store`].
    pub fn store(&self) -> Result<Store, InvalidConfig> {
        made(&self.store, || {
            let store = self.environment.store()?;
            let opened = store.clone();
            let opening = Box::pin(async move {
                if let Err(error) = opened.open_connection().await {
                    let cause = error.cause().unwrap_or("refused").to_owned();
                    tracing::warn!(cause, "the connection to DynamoDB could not be opened during init");
                }
            });
            *self.opening.lock().unwrap_or_else(PoisonError::into_inner) = Some(opening);
            Ok(store)
        })
    }

    /// The keys that tokens are signed with.
    ///
    /// # Errors
    /// As [`Environment::token_keys`].
    pub fn keys(&self) -> Result<Arc<TokenKeys>, InvalidConfig> {
        made(&self.keys, || self.environment.token_keys())
    }

    fn settings(&self) -> Result<Arc<SettingsCache>, InvalidConfig> {
        made(&self.settings, || {
            Ok(Arc::new(SettingsCache::new(self.store()?, self.ambient(), SETTINGS_AGE_MAX)))
        })
    }

    /// The rights of cloud operations.
    ///
    /// # Errors
    /// As [`Self::store`] and [`Self::keys`].
    pub fn cloud_auth(&self) -> Result<CloudAuth, InvalidConfig> {
        Ok(CloudAuth::new(self.store()?, self.keys()?, self.ambient()))
    }

    /// The issuer of tokens.
    ///
    /// # Errors
    /// As [`Self::store`] and [`Self::keys`].
    pub fn issuer(&self) -> Result<Issuer, InvalidConfig> {
        Ok(Issuer::new(self.store()?, self.keys()?, self.ambient()))
    }

    /// The rights of matchmaker operations.
    ///
    /// # Errors
    /// As [`Self::store`] and [`Self::keys`].
    pub fn matchmaker_auth(&self) -> Result<MatchmakerAuth, InvalidConfig> {
        Ok(MatchmakerAuth::new(self.settings()?, self.keys()?, self.ambient()))
    }

    /// A matchmaker with empty memory.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub fn matchmaker(&self) -> Result<Matchmaker, InvalidConfig> {
        Ok(Matchmaker::new(self.store()?, self.settings()?, self.ambient()))
    }

    /// The screening by captcha providers and studios' backends.
    ///
    /// # Errors
    /// As [`Self::store`], [`Self::keys`] and [`Environment::outside`].
    pub fn screening(&self) -> Result<Screening, InvalidConfig> {
        Ok(Screening::new(self.store()?, self.keys()?, self.ambient(), self.outside()?))
    }

    /// The services outside of the deployment.
    ///
    /// # Errors
    /// As [`Environment::outside`].
    pub fn outside(&self) -> Result<Outside, InvalidConfig> {
        self.outside.clone().map_or_else(|| self.environment.outside(), Ok)
    }

    /// The seating, which begins and ends requests for seats. `MUSTER_EDGE_ONLY`: whether each must come
    /// through the edge, `true` or `false`.
    ///
    /// # Errors
    /// As [`Self::store`] and [`Self::keys`]; [`InvalidConfig`] for another value.
    pub fn seating(&self) -> Result<Seating, InvalidConfig> {
        let is_edge_only = self.environment.parsed("MUSTER_EDGE_ONLY")?.unwrap_or(false);
        let (store, auth) = (self.store()?, self.matchmaker_auth()?);
        Ok(Seating::new(store, auth, self.ambient(), self.edge_secret(), is_edge_only))
    }

    /// `MUSTER_EDGE_SECRET`: the secret that authenticates the edge, if there is one.
    #[must_use]
    pub fn edge_secret(&self) -> Option<String> {
        self.environment.optional("MUSTER_EDGE_SECRET")
    }

    /// `MUSTER_DOCUMENTATION_URL`: the page that errors link, at the fragment of their code, if there is one.
    #[must_use]
    pub fn documentation(&self) -> Option<String> {
        self.environment.optional("MUSTER_DOCUMENTATION_URL")
    }
}

/// The value of `cell`, made at its first use.
fn made<T: Clone>(
    cell: &OnceLock<T>,
    make: impl FnOnce() -> Result<T, InvalidConfig>,
) -> Result<T, InvalidConfig> {
    match cell.get() {
        Some(made) => Ok(made.clone()),
        None => make().map(|new| cell.get_or_init(|| new).clone()),
    }
}

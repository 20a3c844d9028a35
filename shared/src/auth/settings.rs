//! Settings kept in the function, so that a warm find reads none of them.

use std::{sync::Arc, time::Duration};

use crate::{
    base::{ambient::Ambient, cache::TimedMap},
    models::{
        errors::Error,
        game::Game,
        ids::{GameId, NamespaceId, VersionId},
        namespace::Namespace,
        version::Version,
    },
    rules::origin::OriginHost,
    store::{catalog::DomainOwner, client::Store},
};

/// How old settings may be in a deployed function (decision 55).
pub const SETTINGS_AGE_MAX: Duration = Duration::from_secs(30);
/// How long the cache remembers that a host has no namespace.
const UNKNOWN_HOST_AGE_MAX: Duration = Duration::from_secs(30);
/// How old settings may be on which a client's version is refused.
const CONFIRMED_AGE_MAX: Duration = Duration::from_secs(1);

/// Entries of each kind kept: far above what one function serves, far below what memory holds.
const ENTRIES_MAX: usize = 1_024;

/// The settings of a find's namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The game.
    pub game: Game,
    /// The namespace.
    pub namespace: Namespace,
    /// Its current version.
    pub version: Arc<Version>,
}

/// Reads settings through a bounded cache.
#[derive(Debug)]
pub struct SettingsCache {
    store: Store,
    ambient: Ambient,
    age_max: Duration,
    settings: TimedMap<NamespaceId, Arc<Settings>>,
    versions: TimedMap<VersionId, Arc<Version>>,
    domains: TimedMap<OriginHost, Option<DomainOwner>>,
}

impl SettingsCache {
    /// A cache that returns settings up to `age_max` old.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient, age_max: Duration) -> Self {
        Self {
            store,
            ambient,
            age_max,
            settings: TimedMap::new(ENTRIES_MAX),
            versions: TimedMap::new(ENTRIES_MAX),
            domains: TimedMap::new(ENTRIES_MAX),
        }
    }

    /// How old returned settings may be.
    #[must_use]
    pub const fn age_max(&self) -> Duration {
        self.age_max
    }

    /// The settings of a namespace of a game; `None` when either is missing. At most two reads.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn settings(&self, game_id: &GameId, id: &NamespaceId) -> Result<Option<Arc<Settings>>, Error> {
        let known = self.settings.get(id, self.age_max, self.ambient.now());
        match known.filter(|settings| settings.game.game_id == *game_id) {
            Some(settings) => Ok(Some(settings)),
            None => self.read(game_id, id).await,
        }
    }

    /// `settings` of a namespace that runs `version_id`, if the request names one. Settings of more than a
    /// second ago are read again before a refusal: its client may know a later version than they do.
    ///
    /// # Errors
    /// [`Error::VersionOutdated`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn running(
        &self,
        version_id: Option<&str>,
        settings: Arc<Settings>,
    ) -> Result<Arc<Settings>, Error> {
        let runs = |settings: &Arc<Settings>| {
            version_id.is_none_or(|version_id| version_id == settings.version.version_id.as_str())
        };
        if runs(&settings) {
            return Ok(settings);
        }
        let namespace_id = &settings.namespace.namespace_id;
        let settings = match self.settings.get(namespace_id, CONFIRMED_AGE_MAX, self.ambient.now()) {
            Some(known) => known,
            None => self.read(&settings.game.game_id, namespace_id).await?.unwrap_or(settings),
        };
        if runs(&settings) {
            return Ok(settings);
        }
        Err(Error::VersionOutdated { current: settings.version.version_id.clone() })
    }

    async fn read(&self, game_id: &GameId, id: &NamespaceId) -> Result<Option<Arc<Settings>>, Error> {
        let now = self.ambient.now();
        let Some((game, namespace)) = self.store.game_and_namespace(game_id, id).await? else {
            return Ok(None);
        };
        let version = self.version(game_id, &namespace.version_id).await?;
        let version = version.ok_or_else(|| Error::Bug("a namespace runs a missing version".to_owned()))?;
        let settings = Arc::new(Settings { game, namespace, version });
        self.settings.put(id.clone(), Arc::clone(&settings), now);
        Ok(Some(settings))
    }

    /// The namespace of a domain. At most one read. The cache also remembers a host without namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn domain_owner(&self, host: &OriginHost) -> Result<Option<DomainOwner>, Error> {
        let now = self.ambient.now();
        let age_max = self.age_max.min(UNKNOWN_HOST_AGE_MAX);
        if let Some(owner) = self.domains.get(host, age_max, now) {
            return Ok(owner);
        }
        let owner = self.store.domain_owner(host).await?;
        self.domains.put(host.clone(), owner.clone(), now);
        Ok(owner)
    }

    /// Forgets everything that may change, after a write by this process.
    pub fn forget(&self) {
        self.settings.clear();
        self.domains.clear();
    }

    /// A version of a game; `None` when it is missing. At most one read while it is in use, since versions
    /// never change.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn version(&self, game_id: &GameId, id: &VersionId) -> Result<Option<Arc<Version>>, Error> {
        let now = self.ambient.now();
        if let Some(version) = self.versions.get(id, Duration::MAX, now)
            && version.game_id == *game_id
        {
            return Ok(Some(version));
        }
        let Some(version) = self.store.version(game_id, id).await?.map(Arc::new) else {
            return Ok(None);
        };
        self.versions.put(id.clone(), Arc::clone(&version), now);
        Ok(Some(version))
    }
}

//! The secrets of versions: captcha keys and the values of verification headers.
//!
//! A version's record only shows that it has some. They are in a table of their own, one item for each
//! version, written in the version's own transaction. Only the functions that need them may read it.

use std::{sync::Arc, time::Duration};

use crate::{
    base::{
        ambient::{Ambient, within},
        cache::TimedMap,
    },
    models::{errors::Error, ids::VersionId, version::Version, version_secrets::VersionSecrets},
    store::client::Store,
};

/// How long a function keeps secrets. They never change, but an instance should forget unused ones.
const SECRETS_AGE_MAX: Duration = Duration::from_secs(300);
/// How long reading a version's secrets may take.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// The most versions whose secrets a function keeps.
const VERSIONS_MAX: usize = 64;

/// A function's secrets, kept for at most five minutes.
#[derive(Debug)]
pub struct SecretsCache {
    store: Store,
    ambient: Ambient,
    versions: TimedMap<VersionId, Arc<VersionSecrets>>,
}

impl SecretsCache {
    /// An empty cache.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, versions: TimedMap::new(VERSIONS_MAX) }
    }

    /// The secrets of a version. At most one call, within three seconds, and none for a version without
    /// secrets.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::Bug`] when they are gone.
    pub async fn of(&self, version: &Version) -> Result<Arc<VersionSecrets>, Error> {
        if !version.has_secrets {
            return Ok(Arc::default());
        }
        let now = self.ambient.now();
        if let Some(known) = self.versions.get(&version.version_id, SECRETS_AGE_MAX, now) {
            return Ok(known);
        }
        let read = within(&self.ambient, READ_TIMEOUT, self.store.version_secrets(&version.version_id)).await;
        let secrets =
            read.ok_or_else(|| Error::Unavailable("a version's secrets did not come in time".to_owned()))??;
        let secrets = secrets.ok_or_else(|| Error::Bug("a version's secrets are gone".to_owned()))?;
        let secrets = Arc::new(secrets);
        self.versions.put(version.version_id.clone(), Arc::clone(&secrets), now);
        Ok(secrets)
    }
}

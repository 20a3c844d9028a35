//! The secrets of versions: captcha keys and the values of verification headers.
//!
//! A version's record says only that it has some. They lie in a table of their own, one item for each version, written in the
//! version's own transaction; only the functions that need them may read it.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    aged::Aged,
    ambient::{Ambient, within},
    errors::Error,
    ids::{GameMode, VersionId},
    settings::{EntryKind, Version, VersionConfig},
    store::Store,
};

/// Bytes that a version's secrets may take together with the names they are kept under: an item of DynamoDB holds 400 KB, but
/// every instance that reads them pays a unit for each 4 KB.
pub const SECRETS_BYTES_MAX: usize = 32 * 1024;
/// How old secrets may be that a function works with. They never change; the bound has an instance forget what it no longer needs.
const SECRETS_AGE_MAX: Duration = Duration::from_secs(300);
/// How long reading a version's secrets may take.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Versions whose secrets a function keeps.
const VERSIONS_MAX: usize = 64;

/// Text that nobody is told. It serializes as `null`: there is one, and that is all that records and answers say.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(Option<String>);

impl Secret {
    /// The text, where it has just been given; nothing where only its existence is known.
    #[must_use]
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_none()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The secrets of a version by what they are of.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionSecrets(BTreeMap<String, String>);

impl VersionSecrets {
    /// Those that `config` was given.
    #[must_use]
    pub fn of(config: &VersionConfig) -> Self {
        let providers = config.captcha.iter().flat_map(|captcha| captcha.providers());
        let keys = providers.map(|(_, keys)| (CAPTCHA_KEY.to_owned(), &keys.secret_key));
        let headers = config.game_modes.iter().flat_map(|(mode, mode_config)| {
            mode_config.actions().flat_map(move |(kind, action)| {
                let headers = action.verification.iter().flat_map(|verification| &verification.headers);
                headers.map(move |(name, value)| (header_key(mode, kind, name), value))
            })
        });
        let all = keys.chain(headers);
        Self(all.filter_map(|(key, secret)| Some((key, secret.reveal()?.to_owned()))).collect())
    }

    /// The secret key at the captcha provider.
    #[must_use]
    pub fn captcha_key(&self) -> Option<&str> {
        self.0.get(CAPTCHA_KEY).map(String::as_str)
    }

    /// The value of a verification header.
    #[must_use]
    pub fn header(&self, mode: &GameMode, kind: EntryKind, name: &str) -> Option<&str> {
        self.0.get(&header_key(mode, kind, name)).map(String::as_str)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all of them and of their names, as DynamoDB counts an item.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

impl fmt::Debug for VersionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

const CAPTCHA_KEY: &str = "captcha";

fn header_key(mode: &GameMode, kind: EntryKind, name: &str) -> String {
    format!("{mode}/{}/{name}", kind.name())
}

/// Secrets as a function works with them, kept for at most five minutes.
#[derive(Debug)]
pub struct SecretsCache {
    store: Store,
    ambient: Ambient,
    versions: Aged<VersionId, Arc<VersionSecrets>>,
}

impl SecretsCache {
    /// A cache that remembers nothing yet.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, versions: Aged::new(VERSIONS_MAX) }
    }

    /// The secrets of a version. At most one call, within three seconds; none for a version without secrets.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_shows_nowhere_but_where_it_is_revealed() {
        let secret: Secret = serde_json::from_value(json!("hidden")).unwrap();
        assert_eq!(secret.reveal(), Some("hidden"));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(serde_json::to_value(&secret).unwrap(), json!(null));
        assert_eq!(serde_json::from_value::<Secret>(json!(null)).unwrap().reveal(), None);
    }

    #[test]
    fn each_secret_is_found_by_what_it_is_of() {
        let verification = json!({ "url": "https://a.example/", "headers": { "authorization": "one" } });
        let config = json!({
            "game_modes": { "duel": { "regions": ["eu"], "actions": {
                "join": { "enabled": true, "verification": verification } } } },
            "captcha": { "requests_before_reverify": 1, "verification_ttl": 1,
                         "turnstile": { "site_key": "site", "secret_key": "two" } },
        });
        let config: VersionConfig = serde_json::from_value(config).unwrap();
        let secrets = VersionSecrets::of(&config);
        let duel = "duel".parse().unwrap();
        assert_eq!(secrets.captcha_key(), Some("two"));
        assert_eq!(secrets.header(&duel, EntryKind::Join, "authorization"), Some("one"));
        assert_eq!(secrets.header(&duel, EntryKind::Find, "authorization"), None);
        let record = serde_json::to_string(&config).unwrap();
        assert!(!record.contains("one") && !record.contains("two"), "{record}");
    }
}

//! The secrets of a version, apart from its configuration.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::models::{
    ids::GameMode,
    version::{EntryKind, VersionConfig},
};

/// The maximum of a version's secrets and their names, in bytes: an item of DynamoDB holds 400 KB, but every
/// instance that reads them pays a unit for each 4 KB.
pub const SECRETS_BYTES_MAX: usize = 32 * 1024;

/// The secrets of a version by their place in its configuration.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionSecrets(BTreeMap<String, String>);

impl VersionSecrets {
    /// The secrets in `config`.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::models::secret::Secret;

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

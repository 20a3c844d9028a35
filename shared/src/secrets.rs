//! The secrets of versions: captcha keys and the values of verification headers.
//!
//! A version's record holds references to them, never them. They are kept apart, where only the functions that need them
//! may read: in AWS as `SecureString` parameters of Systems Manager, in the local stack in a table of their own. A version's
//! secrets are packed into as few parameters as hold them, so that a function reads all of them with one call.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use aws_sdk_ssm::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig, timeout::TimeoutConfig},
    error::DisplayErrorContext,
    types::ParameterType,
};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use serde::{Deserialize, Serialize};

use crate::{
    aged::Aged,
    ambient::{Ambient, within},
    errors::Error,
    ids::{GameMode, VersionId},
    settings::{EntryKind, Version, VersionConfig},
    store::Store,
};

/// Largest value of a standard parameter, in bytes (Systems Manager's quota).
const PARAMETER_BYTES_MAX: usize = 4_096;
/// Parameters that a version's secrets may take. Systems Manager reads ten with one call and takes three writes a second.
pub const PARAMETERS_MAX: usize = 8;
/// How old secrets may be that a function works with: versions never change, but an operator may rotate a parameter.
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

/// A reference to a parameter, below the deployment's own path: `version/number`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterName(String);

impl fmt::Display for ParameterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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

    /// These secrets as the values of parameters, each within its quota: JSON objects.
    #[must_use]
    pub fn packed(&self) -> Vec<String> {
        let mut packed: Vec<String> = Vec::new();
        for entry in &self.0 {
            let entry = serde_json::to_string(&BTreeMap::from([entry])).unwrap_or_default();
            match packed.last_mut() {
                Some(last) if last.len() + entry.len() <= PARAMETER_BYTES_MAX => {
                    // `{"a":1}` and `{"b":2}` become `{"a":1,"b":2}`.
                    last.pop();
                    last.push(',');
                    last.push_str(entry.get(1..).unwrap_or_default());
                }
                _ => packed.push(entry),
            }
        }
        packed
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

/// Where a deployment keeps the secrets of its versions.
#[derive(Clone, Debug)]
pub enum Secrets {
    /// In Systems Manager.
    Parameters(Parameters),
    /// In a table of the local stack.
    Table(Store),
}

/// Parameters of Systems Manager under a path.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Made at the first call, for most instances make none and making it would be a tenth of their init.
    client: Arc<LazyLock<Client, Connect>>,
    path: String,
}

type Connect = Box<dyn FnOnce() -> Client + Send>;

impl Secrets {
    /// Keeps the secrets of a new version; the references to them. None are kept of a version that has none. What a crash
    /// leaves before the version itself is written, nothing refers to.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep(
        &self,
        version_id: &VersionId,
        secrets: &VersionSecrets,
    ) -> Result<Vec<ParameterName>, Error> {
        let mut names = Vec::new();
        for (number, value) in secrets.packed().into_iter().enumerate() {
            let name = ParameterName(format!("{version_id}/{number}"));
            match self {
                Self::Parameters(parameters) => parameters.put(&name, value).await?,
                Self::Table(store) => store.put_secret(&name.0, value).await?,
            }
            names.push(name);
        }
        Ok(names)
    }

    /// The values of `names`.
    async fn values(&self, names: &[ParameterName]) -> Result<Vec<String>, Error> {
        match self {
            Self::Parameters(parameters) => parameters.get(names).await,
            Self::Table(store) => {
                let mut values = Vec::new();
                for name in names {
                    values.push(store.secret(&name.0).await?.ok_or_else(missing)?);
                }
                Ok(values)
            }
        }
    }
}

fn missing() -> Error {
    Error::Bug("a version's secret is gone".to_owned())
}

impl Parameters {
    /// Those under `path`, such as `/muster/secrets`, without a slash at its end. `connect` is called once, or never.
    #[must_use]
    pub fn new(path: String, connect: impl FnOnce() -> Client + Send + 'static) -> Self {
        Self { client: Arc::new(LazyLock::new(Box::new(connect))), path }
    }

    /// Writes a parameter; written twice it is the same, so a call whose answer was lost can be repeated.
    async fn put(&self, name: &ParameterName, value: String) -> Result<(), Error> {
        let put = self
            .client
            .put_parameter()
            .name(self.full_name(name))
            .description("Secrets of a version of a game in Muster.")
            .value(value)
            .r#type(ParameterType::SecureString)
            .overwrite(true);
        put.send().await.map(|_| ()).map_err(|error| unavailable(&DisplayErrorContext(error)))
    }

    async fn get(&self, names: &[ParameterName]) -> Result<Vec<String>, Error> {
        let names = names.iter().map(|name| self.full_name(name)).collect::<Vec<_>>();
        let count = names.len();
        let get = self.client.get_parameters().set_names(Some(names)).with_decryption(true);
        let answer = get.send().await.map_err(|error| unavailable(&DisplayErrorContext(error)))?;
        let parameters = answer.parameters.unwrap_or_default();
        let values: Vec<_> = parameters.into_iter().filter_map(|parameter| parameter.value).collect();
        if values.len() == count { Ok(values) } else { Err(missing()) }
    }

    fn full_name(&self, name: &ParameterName) -> String {
        format!("{}/{name}", self.path)
    }
}

fn unavailable(cause: &dyn fmt::Display) -> Error {
    Error::Unavailable(format!("Systems Manager: {cause}"))
}

/// A client of Systems Manager in `region`, or of an emulator at `endpoint` over plain HTTP.
#[must_use]
pub fn parameters_client(
    region: String,
    credentials: Credentials,
    endpoint: Option<String>,
    http: SharedHttpClient,
) -> Client {
    let mut settings = aws_sdk_ssm::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region))
        .credentials_provider(credentials)
        .retry_config(RetryConfig::standard().with_max_attempts(4))
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(2)).build())
        .http_client(http);
    settings.set_endpoint_url(endpoint);
    Client::from_conf(settings.build())
}

/// Secrets as a function works with them, kept for at most five minutes.
#[derive(Debug)]
pub struct SecretsCache {
    secrets: Secrets,
    ambient: Ambient,
    versions: Aged<VersionId, Arc<VersionSecrets>>,
}

impl SecretsCache {
    /// A cache that remembers nothing yet.
    #[must_use]
    pub fn new(secrets: Secrets, ambient: Ambient) -> Self {
        Self { secrets, ambient, versions: Aged::new(VERSIONS_MAX) }
    }

    /// The secrets of a version. At most one call, within three seconds; none for a version without secrets.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::Bug`] when one of them is gone.
    pub async fn of(&self, version: &Version) -> Result<Arc<VersionSecrets>, Error> {
        if version.secrets.is_empty() {
            return Ok(Arc::default());
        }
        let now = self.ambient.now();
        if let Some(known) = self.versions.get(&version.version_id, SECRETS_AGE_MAX, now) {
            return Ok(known);
        }
        let read = within(&self.ambient, READ_TIMEOUT, self.secrets.values(&version.secrets)).await;
        let values =
            read.ok_or_else(|| Error::Unavailable("a version's secrets did not come in time".to_owned()))??;
        let mut secrets = BTreeMap::new();
        for value in values {
            let part: VersionSecrets = serde_json::from_str(&value)
                .map_err(|_| Error::Bug("a version's secrets are no JSON object of texts".to_owned()))?;
            secrets.extend(part.0);
        }
        let secrets = Arc::new(VersionSecrets(secrets));
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
    fn secrets_are_packed_into_as_few_parameters_as_hold_them() {
        assert_eq!(VersionSecrets::default().packed(), [""; 0]);
        let many: BTreeMap<_, _> = (0..12).map(|n| (format!("mode/find/h{n}"), "\"".repeat(510))).collect();
        let secrets = VersionSecrets(many);
        let packed = secrets.packed();
        assert_eq!(packed.len(), 4, "three of somewhat more than 1,000 bytes each");
        let mut unpacked = BTreeMap::new();
        for part in packed {
            assert!(part.len() <= PARAMETER_BYTES_MAX);
            unpacked.extend(serde_json::from_str::<VersionSecrets>(&part).unwrap().0);
        }
        assert_eq!(VersionSecrets(unpacked), secrets);
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

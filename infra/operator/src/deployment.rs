//! The deployment that a command works in.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "aws")]
use aws_sdk_secretsmanager::Client as SecretsManager;
#[cfg(feature = "aws")]
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
#[cfg(feature = "aws")]
use shared::auth::settings::SETTINGS_AGE_MAX;
use shared::{auth::keys::TokenKeys, base::ambient::Ambient, cloud::issuing::Issuer, store::client::Store};

#[cfg(feature = "aws")]
use crate::reach::problem;
use crate::{error::CommandError, operator::Operator, reach::TargetError};

/// The source of the signing key.
#[derive(Clone, Debug)]
pub(crate) enum KeySource {
    /// Held by this process.
    Held(Arc<TokenKeys>),
    /// From the local stack, in Base64.
    #[cfg(feature = "aws")]
    Local(String),
    /// A secret in AWS.
    #[cfg(feature = "aws")]
    Secret(SecretsManager, String),
}

/// The deployment that a command works in.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub store: Store,
    pub ambient: Ambient,
    /// Its name for people.
    pub name: String,
    pub key: KeySource,
    /// The address of its API, where it is known.
    #[cfg(feature = "aws")]
    pub api_url: Option<String>,
    /// The host that leads to its API where the address has a host of the studio's own, which may lead
    /// elsewhere.
    #[cfg(feature = "aws")]
    pub api_host: Option<String>,
    /// Executions that AWS reserves for each call of game servers; absent in the local stack, where calls
    /// take none from each other.
    pub server_concurrency: Option<u32>,
    /// Who works in it.
    pub operator: Operator,
}

/// How old settings may be in the local stack, whose functions are threads of one process.
const LOCAL_SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

impl Deployment {
    /// How long functions may go on with settings from before a write.
    pub const fn settings_age(&self) -> Duration {
        match &self.key {
            #[cfg(feature = "aws")]
            KeySource::Secret(..) => SETTINGS_AGE_MAX,
            #[cfg(feature = "aws")]
            KeySource::Local(_) => LOCAL_SETTINGS_AGE_MAX,
            KeySource::Held(_) => LOCAL_SETTINGS_AGE_MAX,
        }
    }

    /// The issuer of the deployment's tokens. In AWS this reads the signing key's secret.
    pub async fn issuer(&self) -> Result<Issuer, CommandError> {
        Ok(Issuer::new(self.store.clone(), self.keys().await?, self.ambient.clone()))
    }

    /// The keys that tokens are signed with.
    pub async fn keys(&self) -> Result<Arc<TokenKeys>, TargetError> {
        match &self.key {
            KeySource::Held(keys) => Ok(Arc::clone(keys)),
            #[cfg(feature = "aws")]
            KeySource::Local(key) => {
                let key = BASE64.decode(key).map_err(|error| TargetError::NoSigningKey(error.to_string()))?;
                signing_with(&key)
            }
            #[cfg(feature = "aws")]
            KeySource::Secret(secrets, id) => {
                let secret = secrets.get_secret_value().secret_id(id).send().await;
                let secret = secret.map_err(|error| problem(&error, TargetError::NoSigningKey))?;
                signing_with(secret.secret_string.unwrap_or_default().as_bytes())
            }
        }
    }
}

#[cfg(feature = "aws")]
fn signing_with(key: &[u8]) -> Result<Arc<TokenKeys>, TargetError> {
    TokenKeys::new(key, None).map(Arc::new).map_err(|error| TargetError::NoSigningKey(error.to_string()))
}

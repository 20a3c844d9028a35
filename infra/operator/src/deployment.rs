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
use crate::calls;
use crate::{CommandError, operator::Operator};

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

/// Why a deployment cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The command does not name one.
    #[error("name a deployment: --local for the local stack, or --stack NAME for a stack in AWS")]
    Missing,
    /// No source of settings names an AWS region.
    #[error("no AWS region: give --aws-region, or set AWS_REGION or the region of your profile")]
    NoRegion,
    /// AWS did not respond.
    #[error("cannot reach AWS: {0}")]
    Unreachable(String),
    /// AWS refused the credentials, or there are none.
    #[error("your credentials may not do this: {0}")]
    Denied(String),
    /// The stack in AWS is not there, or is not Muster's.
    #[error("the stack `{stack}` cannot be used: {problem}; check its name and the region")]
    NoStack {
        /// Its name.
        stack: String,
        /// The problem.
        problem: String,
    },
    /// The key that tokens are signed with cannot be read.
    #[error("the signing key cannot be read: {0}")]
    NoSigningKey(String),
    /// The local stack did not respond.
    #[error("no local stack answers at {url} ({problem}); start it with `cargo run`")]
    NoLocalStack {
        /// Its URL.
        url: String,
        /// The problem.
        problem: String,
    },
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
                let secret = secret.map_err(|error| calls::problem(&error, TargetError::NoSigningKey))?;
                signing_with(secret.secret_string.unwrap_or_default().as_bytes())
            }
        }
    }
}

#[cfg(feature = "aws")]
fn signing_with(key: &[u8]) -> Result<Arc<TokenKeys>, TargetError> {
    TokenKeys::new(key, None).map(Arc::new).map_err(|error| TargetError::NoSigningKey(error.to_string()))
}

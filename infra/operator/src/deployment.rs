//! The deployment that a command works in.

use std::sync::Arc;

use aws_sdk_secretsmanager::Client as SecretsManager;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use shared::{ambient::Ambient, issuing::Issuer, store::Store, tokens::TokenKeys};

use crate::{CommandError, target::TargetError};

/// Where the key is that tokens are signed with.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// Told by the local stack, in Base64.
    Local(String),
    /// A secret in AWS.
    Secret(SecretsManager, String),
}

/// The deployment that a command works in.
#[derive(Debug)]
pub(crate) struct Deployment {
    pub store: Store,
    pub ambient: Ambient,
    /// How people name it.
    pub name: String,
    pub key: KeySource,
}

impl Deployment {
    /// Who issues the deployment's tokens. In AWS this reads the signing key's secret.
    pub async fn issuer(&self) -> Result<Issuer, CommandError> {
        Ok(Issuer::new(self.store.clone(), self.keys().await?, self.ambient.clone()))
    }

    /// The keys that tokens are signed with.
    pub async fn keys(&self) -> Result<Arc<TokenKeys>, TargetError> {
        let unusable = |problem: &dyn std::fmt::Display| TargetError::NoSigningKey(problem.to_string());
        let key = match &self.key {
            KeySource::Local(key) => BASE64.decode(key).map_err(|error| unusable(&error))?,
            KeySource::Secret(secrets, id) => {
                let secret = secrets.get_secret_value().secret_id(id).send().await;
                let secret = secret
                    .map_err(|error| unusable(&aws_sdk_secretsmanager::error::DisplayErrorContext(&error)))?;
                secret.secret_string.unwrap_or_default().into_bytes()
            }
        };
        TokenKeys::new(&key, None).map(Arc::new).map_err(|error| unusable(&error))
    }
}

//! What it takes to start the game servers of a region (decision 76), beside the kind of starter.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};

use crate::{
    base::ambient::Ambient,
    models::{game::StarterKind, ids::ServerKey},
};

/// The prefix of `startedBy` of Muster's tasks in Amazon ECS, which the template's rule for stopped tasks
/// has, too.
const TASK_STARTER: &str = "muster/";

/// The starter of a region, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StarterSettings {
    /// Processes of the local stack's machine.
    Process {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// Tasks of Amazon ECS.
    Ecs(EcsSettings),
    /// Requests to a studio's backend.
    Webhook {
        /// The URL: https, on a public address; in a local stack also one on its machine.
        url: String,
        /// The secrets that sign requests, newest first: one, or two while the receiver changes from the
        /// second to the first.
        secrets: Vec<SigningSecret>,
    },
    /// One that only a later release knows.
    #[serde(other)]
    Unknown,
}

/// How tasks of Amazon ECS are started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcsSettings {
    /// The cluster, as name or ARN.
    pub cluster: String,
    /// The task definition: family, family and revision, or ARN. Its first container gets the environment
    /// unless `container` names another.
    pub task_definition: String,
    /// The name of the container that runs the game server.
    pub container: String,
    /// The subnets, of one network.
    pub subnets: Vec<String>,
    /// The security groups.
    pub security_groups: Vec<String>,
    /// Whether Fargate Spot runs them, which may end them with two minutes' notice.
    #[serde(default)]
    pub spot: bool,
}

impl StarterSettings {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> StarterKind {
        match self {
            Self::Process { .. } => StarterKind::Process,
            Self::Ecs(_) => StarterKind::Ecs,
            Self::Webhook { .. } => StarterKind::Webhook,
            Self::Unknown => StarterKind::Unknown,
        }
    }
}

/// `startedBy` of the task of a server, at most 128 characters: it names the server, which has only one
/// start.
#[must_use]
pub fn task_starter(server: &ServerKey) -> String {
    format!("{TASK_STARTER}{server}")
}

/// The server in a task's `startedBy`; `None` in that of others' tasks.
#[must_use]
pub fn server_of_task(starter: &str) -> Option<ServerKey> {
    starter.strip_prefix(TASK_STARTER)?.to_owned().try_into().ok()
}

/// The secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in Base64. Its text is shown only to whoever
/// sets it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SigningSecret(String);

/// The prefix of secrets.
const PREFIX: &str = "whsec_";
/// Bytes of a secret's key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

impl SigningSecret {
    /// A fresh secret of 32 bytes.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self(format!("{PREFIX}{}", BASE64.encode(ambient.bytes::<32>())))
    }

    /// The secret in `text`; `None` unless it has the form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let secret = Self(text.to_owned());
        secret.key().map(|_| secret)
    }

    /// Its text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The key; `None` unless the text has the form.
    #[must_use]
    pub fn key(&self) -> Option<Vec<u8>> {
        let key = BASE64.decode(self.0.strip_prefix(PREFIX)?).ok()?;
        KEY_BYTES.contains(&key.len()).then_some(key)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_form_of_standard_webhooks() {
        let secret = SigningSecret::random(&Ambient::system());
        assert_eq!(SigningSecret::parse(secret.reveal()), Some(secret.clone()));
        assert_eq!(secret.key().unwrap().len(), 32);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        let short = format!("{PREFIX}{}", BASE64.encode([7; 23]));
        for text in ["", "whsec_", "whsec_not base64", &short, secret.reveal().trim_start_matches(PREFIX)] {
            assert_eq!(SigningSecret::parse(text), None, "{text}");
        }
    }
}

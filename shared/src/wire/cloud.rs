//! The cloud operations: bootstrap, versions, namespaces and what can be set in them.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    http::{object, objects_by_name},
    ids::{NamespaceId, VersionId},
    rules::ports::PortSpec,
    settings::{self, CdnAuthType},
};

/// Request of versions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateVersionRequest {
    /// The name that people read.
    pub display_name: String,
    /// What the version configures.
    #[serde(deserialize_with = "object")]
    pub config: settings::VersionConfig,
}

/// Response of versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateVersionResponse {
    /// The version.
    pub version_id: VersionId,
}

/// Request of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateNamespaceRequest {
    /// The name that people read.
    pub display_name: String,
    /// The version that it is to run.
    pub version_id: String,
    /// Its name in addresses.
    pub name_id: String,
}

/// Response of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateNamespaceResponse {
    /// The namespace.
    pub namespace_id: NamespaceId,
}

/// Request of tokens/development.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateDevelopmentTokenRequest {
    /// The developer's machine.
    pub hostname: String,
    /// Its ports by label.
    #[serde(deserialize_with = "objects_by_name")]
    pub ports: BTreeMap<String, PortSpec>,
}

/// Response of the operations that issue a token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TokenResponse {
    /// The token, never to be seen again.
    pub token: String,
}

/// Response of bootstrap (interface 2.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BootstrapResponse {
    /// Who may use the deployment.
    pub access: Access,
    /// Captchas that clients may meet.
    pub captcha: BootstrapCaptcha,
    /// The kind of cluster.
    pub cluster: &'static str,
    /// Domains of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<Domains>,
    /// Ways to log in.
    pub login_methods: LoginMethods,
    /// Origins that URLs are built from.
    pub origins: Origins,
}

/// Who may use a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Its owners alone.
    #[default]
    Private,
    /// Everybody.
    Public,
}

impl FromStr for Access {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "private" => Ok(Self::Private),
            "public" => Ok(Self::Public),
            _ => Err("must be `private` or `public`"),
        }
    }
}

/// Captchas that clients may meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BootstrapCaptcha {
    /// Turnstile, when it is set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnstile: Option<Turnstile>,
}

/// Turnstile's public part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turnstile {
    /// The key that pages show.
    pub site_key: String,
}

/// Domains hosting parts of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Domains {
    /// Of the CDN.
    pub cdn: String,
    /// Of game servers.
    pub job: String,
    /// Of everything else.
    pub main: String,
}

/// Ways to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoginMethods {
    /// By access token.
    pub access_token: bool,
    /// By email.
    pub email: bool,
}

/// Origins that URLs are built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origins {
    /// Of the hub.
    pub hub: String,
}

/// Request of mm-config/validate (interface 4.3) and of mm-config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchmakerConfigRequest {
    /// Lobbies that the namespace may hold.
    pub lobby_count_max: u32,
    /// Seats that one client may hold.
    pub max_players: u32,
}

/// Response of every operation that validates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationResponse {
    /// What would be refused; empty when valid.
    pub errors: Vec<ValidationError>,
}

impl ValidationResponse {
    /// The response for the refused `paths`.
    #[must_use]
    pub fn new(paths: Vec<Vec<String>>) -> Self {
        Self { errors: paths.into_iter().map(|path| ValidationError { path }).collect() }
    }
}

/// Where a value would be refused (interface 2.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// The parts of the path, the violation last.
    pub path: Vec<String>,
}

/// Request of cdn-auth (interface 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetCdnAuthTypeRequest {
    /// How the CDN is to authenticate.
    pub auth_type: CdnAuthType,
}

/// Request of auth-user (interface 4.5).
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct UpdateCdnAuthUserRequest {
    /// The user's name.
    pub user: String,
    /// A bcrypt hash.
    pub password: String,
}

/// Request of version (interface 4.6).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpdateNamespaceVersionRequest {
    /// The version that the namespace is to run.
    pub version_id: String,
}

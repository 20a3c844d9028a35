//! Bootstrap: what clients learn of the deployment.

use std::str::FromStr;

use serde::Serialize;

/// Response of bootstrap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BootstrapResponse {
    /// The access to the deployment.
    pub access: DeploymentAccess,
    /// Captchas that clients may have to pass.
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

/// The access to a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentAccess {
    /// Only its owners.
    #[default]
    Private,
    /// All users.
    Public,
}

impl FromStr for DeploymentAccess {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "private" => Ok(Self::Private),
            "public" => Ok(Self::Public),
            _ => Err("must be `private` or `public`"),
        }
    }
}

/// Captchas that clients may have to pass.
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

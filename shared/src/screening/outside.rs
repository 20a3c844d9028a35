//! What lies outside of a deployment and may be called.

use aws_smithy_runtime_api::client::dns::SharedDnsResolver;

use crate::screening::web_client::{Reach, SystemResolver};

/// What lies outside of the deployment, and how much of it may be called.
#[derive(Clone, Debug)]
pub struct Outside {
    /// hCaptcha's `siteverify`.
    pub hcaptcha_url: String,
    /// Turnstile's `siteverify`.
    pub turnstile_url: String,
    /// Which addresses may be called.
    pub reach: Reach,
    /// Who says which addresses a name has.
    pub resolver: SharedDnsResolver,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            hcaptcha_url: HCAPTCHA_URL.to_owned(),
            turnstile_url: TURNSTILE_URL.to_owned(),
            reach: Reach::Public,
            resolver: SharedDnsResolver::new(SystemResolver),
        }
    }
}

/// Where hCaptcha verifies answers (its documentation, "Verify the User Response Server Side").
pub const HCAPTCHA_URL: &str = "https://api.hcaptcha.com/siteverify";
/// Where Turnstile verifies answers (its documentation, "Server-side validation").
pub const TURNSTILE_URL: &str = "https://challenges.cloudflare.com/turnstile/v0/siteverify";

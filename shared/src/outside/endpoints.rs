//! The services outside of a deployment that it calls.

use aws_smithy_runtime_api::client::dns::SharedDnsResolver;

use crate::outside::web_client::{Reach, SystemResolver};

/// The services outside of the deployment, and which of them it may call.
#[derive(Clone, Debug)]
pub struct Outside {
    /// hCaptcha's `siteverify`.
    pub hcaptcha_url: String,
    /// Turnstile's `siteverify`.
    pub turnstile_url: String,
    /// Which addresses may be called.
    pub reach: Reach,
    /// The resolver of host names.
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

/// hCaptcha's endpoint (its documentation, "Verify the User Response Server Side").
pub const HCAPTCHA_URL: &str = "https://api.hcaptcha.com/siteverify";
/// Turnstile's endpoint (its documentation, "Server-side validation").
pub const TURNSTILE_URL: &str = "https://challenges.cloudflare.com/turnstile/v0/siteverify";

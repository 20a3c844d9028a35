//! Webhooks signed by the specification Standard Webhooks, which receivers verify with its libraries.
//!
//! The signature is that of its section "Signature scheme": HMAC-SHA256 over identifier, time in seconds and
//! body, joined by dots. Its crate would bring a second HMAC and a third base64 for these three lines.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::hmac;

use crate::{
    base::ambient::{Ambient, Timestamp},
    models::starter::SigningSecret,
    outside::{
        endpoints::Outside,
        web_client::{Answer, NoAnswer, Post, WebClient},
    },
};

/// How long a receiver may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes that are read of its response.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Sends webhooks.
#[derive(Debug)]
pub struct Webhooks {
    web: WebClient,
    ambient: Ambient,
}

/// The response of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Webhooks {
    /// Sends webhooks to the addresses that `outside` lets be called.
    #[must_use]
    pub fn new(outside: Outside, ambient: Ambient) -> Self {
        Self { web: WebClient::new(outside.reach, outside.resolver, ambient.clone()), ambient }
    }

    /// Posts `body`, JSON, to `url` as the event `id`, signed with each of the secrets.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub async fn send(
        &self,
        url: &str,
        secrets: &[SigningSecret],
        id: &str,
        body: String,
    ) -> Result<Received, NoAnswer> {
        let now = self.ambient.now();
        let signatures: Vec<_> =
            secrets.iter().filter_map(|secret| signature(secret, id, now, &body)).collect();
        let (time, signatures) = (now.secs().to_string(), signatures.join(" "));
        let headers =
            vec![("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signatures)];
        let content_type = "application/json";
        let post = Post { url, content_type, headers, body, answer_bytes_max: Some(ANSWER_BYTES_MAX) };
        let Answer { status, body } = self.web.post(post, TIMEOUT).await?;
        Ok(Received { status: status.as_u16(), body })
    }
}

/// The signature of `body` as the event `id` at `now`; `None` when the secret is none.
fn signature(secret: &SigningSecret, id: &str, now: Timestamp, body: &str) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.key()?);
    let signed = hmac::sign(&key, format!("{id}.{}.{body}", now.secs()).as_bytes());
    Some(format!("v1,{}", BASE64.encode(signed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn the_signature_is_that_of_the_specification() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signature(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Timestamp(1_614_265_330_000),
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}

//! Muster's API as the agent calls it, with retries.

use std::time::Duration;

use hyper::{
    Method, Request,
    body::Bytes,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use muster_console::host::Api;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shared::base::ambient::Ambient;
use tokio::time::{Instant, sleep, timeout};

use crate::agent::rules::{is_transient, pause};

/// How long any attempt may go without a response: no function answers later.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(31);

/// The API, with the namespace's server token.
pub(super) struct Service {
    api: Api,
    server_token: String,
    ambient: Ambient,
}

/// A request that was refused, or got no response; then `status` is 0.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: u16,
    pub code: String,
    /// The response, or why there is none.
    pub body: Bytes,
    retry_after: Duration,
}

/// A request, the same in each attempt.
#[derive(Clone)]
pub(super) struct Message {
    pub method: Method,
    pub path: &'static str,
    pub token: String,
    pub body: Bytes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    code: String,
    message: String,
}

impl Refusal {
    /// The agent's own, in the form of the service.
    pub fn of_agent(code: &str, message: &str) -> Self {
        let body = json!({ "code": code, "message": message }).to_string().into();
        Self { status: 400, code: code.to_owned(), body, retry_after: Duration::ZERO }
    }

    /// What its code promises.
    pub fn metadata(&self) -> Bytes {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body.get("metadata").unwrap_or(&json!({})).to_string().into()
    }

    pub const fn is_transient(&self) -> bool {
        is_transient(self.status)
    }

    fn none(problem: String) -> Self {
        Self { status: 0, code: String::new(), body: problem.into(), retry_after: Duration::ZERO }
    }

    /// It in words, without any token.
    pub fn text(&self) -> String {
        let Self { status, code, body, .. } = self;
        let Refused { message, .. } = serde_json::from_slice(body).unwrap_or_default();
        match (status, code.as_str()) {
            (0, _) => format!("no response: {}", String::from_utf8_lossy(body)),
            (_, "") => format!("status {status}"),
            _ => format!("{code}: {message}"),
        }
    }
}

impl Service {
    pub const fn new(api: Api, server_token: String, ambient: Ambient) -> Self {
        Self { api, server_token, ambient }
    }

    /// A request with the server token.
    pub fn as_server(&self, path: &'static str, body: &Value) -> Message {
        Message {
            method: Method::POST,
            path,
            token: self.server_token.clone(),
            body: body.to_string().into(),
        }
    }

    /// Sends a request once.
    ///
    /// # Errors
    /// [`Refusal`], also where no whole response comes within `limit`.
    pub async fn attempt(&self, message: &Message, limit: Duration) -> Result<Bytes, Refusal> {
        let Message { method, path, token, body } = message.clone();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| Refusal::none(error.to_string()))?;
        let limit = limit.min(ATTEMPT_MAX);
        let response = timeout(limit, (self.api)(request)).await;
        let response = response.map_err(|_| Refusal::none(format!("none in {limit:.0?}")))?;
        let (parts, body) = response.map_err(Refusal::none)?.into_parts();
        if parts.status.is_success() {
            return Ok(body);
        }
        let Refused { code, .. } = serde_json::from_slice(&body).unwrap_or_default();
        // A date would compare two clocks.
        let secs = parts.headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let retry_after = Duration::from_secs(secs.unwrap_or(0));
        Err(Refusal { status: parts.status.as_u16(), code, body, retry_after })
    }

    /// Sends a request until it has a response that stays, for at most `limit`.
    ///
    /// # Errors
    /// The last [`Refusal`].
    pub async fn call(&self, message: &Message, limit: Duration) -> Result<Bytes, Refusal> {
        let end = Instant::now() + limit;
        let mut failures = 0;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let refusal = match self.attempt(message, left).await {
                Err(refusal) if refusal.is_transient() => refusal,
                result => return result,
            };
            let pause = self.pause(failures, &refusal);
            if Instant::now() + pause >= end {
                return Err(refusal);
            }
            failures += 1;
            sleep(pause).await;
        }
    }

    /// The pause before the next attempt.
    pub fn pause(&self, failures: u32, refusal: &Refusal) -> Duration {
        let draw = f64::from(u32::from_le_bytes(self.ambient.bytes())) / f64::from(u32::MAX);
        pause(failures, refusal.retry_after, draw)
    }
}

/// The body of a success; one that cannot be read is no response.
pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::none(error.to_string()))
}

//! One request, and its repetition until a response stays.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Cause, Error, Refusal};

/// After that, an attempt without a response counts as lost.
const ATTEMPT: Duration = Duration::from_secs(11);
/// The same of a call that seats players or changes game servers, which may take 29 seconds.
pub(crate) const LONG_ATTEMPT: Duration = Duration::from_secs(31);
/// How long a call may take, its repetitions included.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// The bound of the first random delay, which doubles up to the last.
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// A request as it is sent, the same in each attempt.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) body: Option<Vec<u8>>,
    /// After how long an attempt without a response counts as lost.
    pub(crate) attempt: Duration,
}

impl Call {
    pub(crate) fn get(url: String, token: Option<String>) -> Self {
        Self { method: Method::GET, url, token, key: None, body: None, attempt: ATTEMPT }
    }

    /// # Errors
    /// What cannot be JSON, such as a number that is not finite.
    pub(crate) fn send(method: Method, url: String, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(Error::unsent)?;
        Ok(Self { method, url, token: None, key: None, body: Some(body), attempt: ATTEMPT })
    }
}

/// A whole response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Whole seconds; a date would compare two clocks.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) ray_id: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// What sends a request once; tests pass their own.
pub(crate) trait Transport: Send + Sync {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Reply, Cause>>;
}

impl Transport for reqwest::Client {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Reply, Cause>> {
        Box::pin(async move {
            let mut request = self.request(call.method, call.url);
            if let Some(token) = call.token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            if let Some(key) = call.key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = call.body {
                request = request.header(CONTENT_TYPE, "application/json").body(body);
            }
            let response = request.send().await?;
            let text = |headers: &HeaderMap, name| Some(headers.get(name)?.to_str().ok()?.to_owned());
            let seconds: Option<u64> =
                text(response.headers(), RETRY_AFTER.as_str()).and_then(|text| text.parse().ok());
            Ok(Reply {
                status: response.status().as_u16(),
                retry_after: seconds.map(Duration::from_secs),
                ray_id: text(response.headers(), "x-request-id"),
                body: response.bytes().await?.to_vec(),
            })
        })
    }
}

/// Where requests go.
pub(crate) type World = Arc<dyn Transport>;

/// The wait before the next attempt: what the service asks for, and a full jitter.
pub(crate) fn delay(failures: u32, retry_after: Option<Duration>) -> Duration {
    let bound = BACKOFF_MAX.min(BACKOFF * 2_u32.saturating_pow(failures.min(16)));
    retry_after.unwrap_or_default() + bound.mul_f64(fastrand::f64())
}

/// Sends a request once.
///
/// # Errors
/// The refusal; [`Error::no_response`] without a whole response within `limit`.
pub(crate) async fn attempt<T: DeserializeOwned>(
    world: &World,
    call: &Call,
    limit: Duration,
) -> Result<T, Error> {
    let reply = timeout(limit, world.send(call.clone())).await;
    let reply = reply.map_err(|late| Error::no_response(Some(late.into())))?;
    let reply = reply.map_err(|lost| Error::no_response(Some(lost)))?;
    if !(200..300).contains(&reply.status) {
        return Err(refusal(&reply));
    }
    // A body that was cut off is no response either.
    serde_json::from_slice(&reply.body).map_err(|problem| Error::no_response(Some(problem.into())))
}

/// Sends a request that changes nothing when it is repeated, until it gets a response that stays.
///
/// # Errors
/// As [`attempt`], the last one before the deadline.
pub(crate) async fn send<T: DeserializeOwned>(
    world: &World,
    call: &Call,
    deadline: Duration,
) -> Result<T, Error> {
    let end = Instant::now() + deadline;
    let mut failures = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let error = match attempt(world, call, call.attempt.min(left)).await {
            Err(error) if error.is_transient() => error,
            answer => return answer,
        };
        let wait = delay(failures, error.retry_after);
        if Instant::now() + wait >= end {
            return Err(error);
        }
        sleep(wait).await;
        failures += 1;
    }
}

/// The body of an error; the gateway's own may have none of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    code: Option<String>,
    message: Option<String>,
    ray_id: Option<String>,
    documentation: Option<String>,
    metadata: Map<String, Value>,
}

pub(crate) fn refusal(reply: &Reply) -> Error {
    let Body { code, message, ray_id, documentation, metadata } =
        serde_json::from_slice(&reply.body).unwrap_or_default();
    Refusal {
        status: reply.status,
        code,
        message: message.unwrap_or_else(|| format!("status {}", reply.status)),
        retry_after: reply.retry_after,
        ray_id: ray_id.or_else(|| reply.ray_id.clone()),
        documentation,
        metadata,
        cause: None,
    }
    .into()
}

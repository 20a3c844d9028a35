//! The service over HTTP, with JSON in both directions, and retries on 503.

use std::{error::Error, time::Duration};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    header::{AUTHORIZATION, RETRY_AFTER},
};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// Longer than any response takes: API Gateway times out after 30 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(35);
/// Tries of a request with a response to retry later.
const TRIES: u32 = 30;
/// Pause before the next try if the response names none.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls the service, with one token or without.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    base_url: String,
    token: Option<String>,
}

/// Why a call failed; without any token.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{url} does not respond: {problem}")]
    NoAnswer { url: String, problem: String },
    /// The code is stable, unlike the message. The gateway's own responses have none.
    #[error("{path} was refused: {status} {code} {message}")]
    Refused { path: String, status: StatusCode, code: String, message: String },
    #[error("{path} sent an unexpected response: {problem}")]
    Unreadable { path: String, problem: serde_json::Error },
}

impl ClientError {
    /// The code of a refusal, if there is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

impl Client {
    /// A client of the service at `base_url`, without token.
    pub fn new(base_url: &str) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { http, base_url: base_url.trim_end_matches('/').to_owned(), token: None }
    }

    /// The same client with a token.
    pub fn with_token(&self, token: String) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T, ClientError> {
        self.call(Method::POST, path, body.to_string().into()).await
    }

    pub async fn put<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T, ClientError> {
        self.call(Method::PUT, path, body.to_string().into()).await
    }

    /// Calls until the response is not a 503, which a find also gets while all game servers are full.
    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let mut tries_left = TRIES;
        loop {
            let answer = timeout(ANSWER_TIMEOUT, self.send(&method, path, body.clone())).await;
            let answer = answer.unwrap_or_else(|_| Err("it took too long".to_owned()));
            let Answer { status, retry_after, body } =
                answer.map_err(|problem| ClientError::NoAnswer { url: self.base_url.clone(), problem })?;
            if status == StatusCode::OK {
                let parsed = serde_json::from_slice(&body);
                return parsed.map_err(|problem| ClientError::Unreadable { path: path.to_owned(), problem });
            }
            tries_left -= 1;
            let is_later = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
            if !is_later || tries_left == 0 {
                let Refusal { code, message } = serde_json::from_slice(&body).unwrap_or_default();
                return Err(ClientError::Refused { path: path.to_owned(), status, code, message });
            }
            // Jitter, so that clients do not retry at the same time.
            sleep(retry_after.unwrap_or(PAUSE) + up_to(PAUSE / 2)).await;
        }
    }

    async fn send(&self, method: &Method, path: &str, body: Bytes) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base_url));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body)).map_err(|error| root_cause(&error))?;
        let response = self.http.request(request).await.map_err(|error| root_cause(&error))?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| root_cause(&error))?.to_bytes();
        Ok(Answer { status, retry_after, body })
    }
}

struct Answer {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Bytes,
}

/// The body of an error; the gateway's own has no code.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    code: String,
    message: String,
}

/// The root cause of the HTTP client's errors.
fn root_cause(mut error: &dyn Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// A random time up to `most`.
pub fn up_to(most: Duration) -> Duration {
    let (random, ..) = Uuid::new_v4().as_fields();
    most.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

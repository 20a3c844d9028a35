//! An answer over HTTP.

use std::{borrow::Cow, io::Read as _};

use flate2::read::GzDecoder;
use http::{HeaderMap, StatusCode, header::CONTENT_ENCODING, response};
use serde_json::Value;

/// An answer over HTTP.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, `null` when it is no JSON.
    pub body: Value,
    /// Its body as it came, but for its encoding.
    pub text: String,
    /// The length of its body as it came, in bytes.
    pub sent_bytes: usize,
}

/// What `body` is in gzip of.
///
/// # Panics
/// When it is not in gzip.
#[must_use]
pub fn gunzip(body: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    GzDecoder::new(body).read_to_end(&mut decoded).expect("a body in gzip");
    decoded
}

impl Answer {
    /// An answer that came as `parts` and `body`.
    #[must_use]
    pub fn new(parts: response::Parts, body: &[u8]) -> Self {
        let sent_bytes = body.len();
        let is_encoded = parts.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let body = if is_encoded { Cow::Owned(gunzip(body)) } else { Cow::Borrowed(body) };
        let text = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Self { status: parts.status, headers: parts.headers, body, text, sent_bytes }
    }

    /// Status and `code` of an error; the code is empty where there is none.
    #[must_use]
    pub fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }

    /// The answer itself, which must be a success.
    #[expect(clippy::must_use_candidate, reason = "the assertion alone is worth the call")]
    pub fn expect_ok(self) -> Self {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        self
    }

    /// The lobby that a find answered.
    #[must_use]
    pub fn lobby_id(&self) -> String {
        self.body["lobby"]["lobby_id"]
            .as_str()
            .unwrap_or_else(|| panic!("no lobby: {}", self.body))
            .to_owned()
    }
}

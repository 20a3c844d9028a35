//! An answer over HTTP.

use http::{HeaderMap, StatusCode, response};
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
    /// Its body as it came.
    pub text: String,
}

impl Answer {
    /// An answer that came as `parts` and `body`.
    #[must_use]
    pub fn new(parts: response::Parts, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        Self { status: parts.status, headers: parts.headers, body, text }
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

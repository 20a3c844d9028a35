//! Why a call failed.

use std::{fmt, ops::Deref, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A request that was refused, or that got no response in time.
#[derive(Debug)]
pub struct Error(Box<Refusal>);

/// What the response said. Serialized it is the body of one, such as for a player who is refused.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status; 0 where no whole response came.
    #[serde(skip)]
    pub status: u16,
    /// The stable code; absent where the gateway responded, or nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// For people; may change.
    pub message: String,
    /// After how long a retry makes sense.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
    /// Identifies the request in the service's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ray_id: Option<String>,
    /// A page that explains the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// What the code promises, such as `max`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The problem of the network, or of the request that could not be sent.
    #[serde(skip)]
    pub(crate) cause: Option<Cause>,
}

impl Deref for Error {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as _)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self(Box::new(refusal))
    }
}

impl Error {
    /// Whether the same request may succeed later: there was no response, or it was 408, 429 or 5xx.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.status, 0 | 408 | 429 | 500..)
    }

    /// Whether it has this code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    pub(crate) fn refused(code: &str, message: &str) -> Self {
        Refusal {
            status: 400,
            code: Some(code.to_owned()),
            message: message.to_owned(),
            ..Refusal::default()
        }
        .into()
    }

    pub(crate) fn no_response(cause: Option<Cause>) -> Self {
        Refusal { message: "no response of the matchmaker".to_owned(), cause, ..Refusal::default() }.into()
    }

    /// A request that cannot be JSON.
    pub(crate) fn unsent(problem: serde_json::Error) -> Self {
        Refusal {
            status: 400,
            message: problem.to_string(),
            cause: Some(problem.into()),
            ..Refusal::default()
        }
        .into()
    }
}

//! A value that is never shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Text that is never shown. It serializes as `null`, so records and responses only show that it exists.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(Option<String>);

impl Secret {
    /// The text, if a request has just given it; `None` if only its existence is known.
    #[must_use]
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_none()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

//! What the creator of a lobby may configure: any JSON of bounded size, for the lobby server alone.

use serde_json::{Value, value::RawValue};

use crate::{errors::Error, http::bad_body};

/// The largest configuration, in bytes of JSON text (operations beyond the interface).
pub const LOBBY_CONFIG_BYTES_MAX: usize = 16 * 1024;

/// A lobby's configuration as JSON text.
#[derive(Clone, Debug)]
pub struct LobbyConfig(Box<RawValue>);

impl LobbyConfig {
    /// The configuration `json`.
    ///
    /// # Errors
    /// [`Error::BadBody`] above [`LOBBY_CONFIG_BYTES_MAX`].
    pub fn new(json: &Value) -> Result<Self, Error> {
        let text = json.to_string();
        if text.len() > LOBBY_CONFIG_BYTES_MAX {
            return Err(bad_body("lobby_config", "larger than 16 KiB"));
        }
        RawValue::from_string(text).map(Self).map_err(|error| Error::Bug(error.to_string()))
    }

    /// The JSON text.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.0
    }
}

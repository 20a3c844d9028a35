//! The configuration that a lobby's creator gives it: any JSON of bounded size, only for the lobby server.

use serde_json::value::RawValue;

use crate::models::{
    errors::{Error, bad_body},
    handed_on::HandedOn,
};

/// The largest configuration, in bytes of JSON text.
pub const LOBBY_CONFIG_BYTES_MAX: usize = 16 * 1024;

/// A lobby's configuration as JSON text.
#[derive(Clone, Debug)]
pub struct LobbyConfig(HandedOn);

impl LobbyConfig {
    /// The configuration `json`.
    ///
    /// # Errors
    /// [`Error::BadBody`] above [`LOBBY_CONFIG_BYTES_MAX`].
    pub fn new(json: HandedOn) -> Result<Self, Error> {
        if json.json().get().len() > LOBBY_CONFIG_BYTES_MAX {
            return Err(bad_body("lobby_config", "larger than 16 KiB"));
        }
        Ok(Self(json))
    }

    /// The JSON text, exactly as it was sent.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        self.0.json()
    }
}

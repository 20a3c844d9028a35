//! What a player's client says of its player: any JSON of bounded size, in the player token.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The largest data, in bytes of JSON text: with it, a player token has about 1,150 characters.
pub const PLAYER_DATA_BYTES_MAX: usize = 512;

/// A player's data as JSON text, exactly as it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlayerData(Box<RawValue>);

impl PlayerData {
    /// The data `json`, which every parser reads; `None` above [`PLAYER_DATA_BYTES_MAX`].
    #[must_use]
    pub fn new(json: &RawValue) -> Option<Self> {
        (json.get().len() <= PLAYER_DATA_BYTES_MAX).then(|| Self(json.to_owned()))
    }
}

impl PartialEq for PlayerData {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for PlayerData {}

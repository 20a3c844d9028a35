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

/// A player as its lobby server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlayerDetails {
    /// The player's name within the lobby: that of the seat, the same for as long as the player has it.
    pub player_id: String,
    /// How often the player came back by the token that was shown: 0 for the first token of the seat.
    pub generation: u32,
    /// Whether an earlier token's connection may still be open, which this player's replaces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// The player's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_data: Option<PlayerData>,
}

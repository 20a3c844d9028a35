//! Who finds a lobby that a player created.

use serde::Deserialize;

/// Who finds a lobby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Publicity {
    /// All players: it is found and listed like any other.
    Public,
    /// Nobody: players enter who have its identifier or code.
    #[default]
    Private,
}

impl TryFrom<String> for Publicity {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.as_str() {
            "public" => Ok(Self::Public),
            "private" => Ok(Self::Private),
            _ => Err("must be `public` or `private`"),
        }
    }
}

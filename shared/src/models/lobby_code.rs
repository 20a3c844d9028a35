//! The code of a lobby that a player created: short enough to say aloud, in place of its identifier.
//!
//! The lobby's identifier follows from its code, so that a code needs no item of its own: a lobby is created
//! only where none with its identifier is, which keeps its code unique, and a join by code reads the lobby
//! itself (decision 71).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    base::ambient::Ambient,
    models::{ids::LobbyId, tag_digests::TagKey},
};

/// Letters and digits that nobody takes for another one: no 0 and O, no 1, I and L.
const SYMBOLS: &[u8; 31] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";
/// Symbols in a code: 887,503,681 codes.
const SYMBOLS_IN_CODE: usize = 6;

/// A code of six symbols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LobbyCode(String);

impl LobbyCode {
    /// A code that is drawn.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        let symbol = |_| {
            let drawn = usize::try_from(ambient.below(SYMBOLS.len() as u64)).unwrap_or(0);
            SYMBOLS.get(drawn).copied().map_or('2', char::from)
        };
        Self((0..SYMBOLS_IN_CODE).map(symbol).collect())
    }

    /// The code that a player typed, in any case and with blanks around; `None` for other text.
    #[must_use]
    pub fn typed(text: &str) -> Option<Self> {
        let code = text.trim().to_ascii_uppercase();
        let is_code = code.len() == SYMBOLS_IN_CODE && code.bytes().all(|byte| SYMBOLS.contains(&byte));
        is_code.then_some(Self(code))
    }

    /// The code in responses to development tokens.
    #[must_use]
    pub fn mock() -> Self {
        Self("DEVDEV".to_owned())
    }

    /// The lobby of the code in the namespace of `key`: the same for every instance, and unguessable without
    /// the key, so that no other operation takes a guessed code.
    #[must_use]
    pub fn lobby_id(&self, key: &TagKey) -> LobbyId {
        uuid::Builder::from_custom_bytes(key.digest("lobby code", &self.0)).into_uuid().into()
    }
}

impl fmt::Display for LobbyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_typed_in_any_case_and_with_blanks_around_and_nothing_else_is_one() {
        let code = LobbyCode::random(&Ambient::system());
        assert_eq!((code.0.len(), LobbyCode::typed(&code.0)), (6, Some(code.clone())));
        assert_eq!(LobbyCode::typed(&format!(" {}\n", code.0.to_lowercase())), Some(code));
        for text in
            ["", "ABC 23", "ABC23", "ABC2345", "ABC230", "ABC23O", "ABC231", "ABC23i", "ABC23l", "ABC23ä"]
        {
            assert_eq!(LobbyCode::typed(text), None, "{text}");
        }
        assert_eq!(LobbyCode::typed("devdev"), Some(LobbyCode::mock()));
    }

    #[test]
    fn every_symbol_is_drawn_and_none_is_taken_for_another_one() {
        let ambient = Ambient::system();
        let mut drawn: Vec<u8> = (0..500).flat_map(|_| LobbyCode::random(&ambient).0.into_bytes()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, SYMBOLS);
        assert!(!drawn.iter().any(|symbol| b"0O1IL".contains(symbol)));
    }

    #[test]
    fn a_code_names_one_lobby_of_each_namespace() {
        let ambient = Ambient::system();
        let (key, other) = (TagKey::random(&ambient), TagKey::random(&ambient));
        let code = LobbyCode::mock();
        assert_eq!(code.lobby_id(&key), code.lobby_id(&key.clone()));
        assert_ne!(code.lobby_id(&key), code.lobby_id(&other));
        assert_ne!(code.lobby_id(&key), LobbyCode("DEVDEW".to_owned()).lobby_id(&key));
    }
}

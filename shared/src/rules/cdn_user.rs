//! Which names CDN users may have: those that HTTP Basic can carry.

use std::str::FromStr;

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 128;

/// A name that HTTP Basic cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user name has 1 to 128 characters without `:` and control characters")]
pub struct InvalidName;

/// A name: 1 to 128 characters, no `:` (it ends the name in HTTP Basic) and no control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdnUserName(String);

impl CdnUserName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CdnUserName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        let has_length = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
        let is_plain = !name.chars().any(|c| c == ':' || c.is_control());
        if has_length && is_plain { Ok(Self(name.to_owned())) } else { Err(InvalidName) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_http_basic_carries_pass() {
        for name in ["a", "Grüße aus Köln", "a b@c.d#e", &"ü".repeat(128)] {
            assert_eq!(name.parse::<CdnUserName>().as_ref().map(CdnUserName::as_str), Ok(name));
        }
        for name in ["", "a:b", "a\nb", "a\u{7f}", "\u{0}", &"x".repeat(129)] {
            assert_eq!(name.parse::<CdnUserName>(), Err(InvalidName), "{name:?}");
        }
    }
}

//! Which names CDN users may have: those that HTTP Basic can carry.

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 128;

/// A name that HTTP Basic cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user name has 1 to 128 characters without `:` and control characters")]
pub struct InvalidName;

/// Checks a name: 1 to 128 characters, no `:` (it ends the name in HTTP Basic) and no control characters.
///
/// # Errors
/// [`InvalidName`].
pub fn check_name(name: &str) -> Result<(), InvalidName> {
    let has_length = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if has_length && !name.chars().any(|c| c == ':' || c.is_control()) { Ok(()) } else { Err(InvalidName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_http_basic_carries_pass() {
        for name in ["a", "Grüße aus Köln", "a b@c.d#e", &"ü".repeat(128)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "a:b", "a\nb", "a\u{7f}", "\u{0}", &"x".repeat(129)] {
            assert_eq!(check_name(name), Err(InvalidName), "{name:?}");
        }
    }
}

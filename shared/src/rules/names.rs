//! Names in URLs, and display names.

use crate::models::violations::Violations;

/// Longest name in addresses, in characters.
const NAME_ID_CHARS_MAX: usize = 64;
/// Longest name that people read, in characters.
const DISPLAY_NAME_CHARS_MAX: usize = 128;

/// Whether `text` is a name in addresses: 1 to 64 characters of a-z, 0-9 and inner hyphens.
#[must_use]
pub fn is_name_id(text: &str) -> bool {
    (1..=NAME_ID_CHARS_MAX).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The violations of a namespace's names.
#[must_use]
pub fn namespace_violations(display_name: &str, name_id: &str) -> Violations {
    let mut violations = display_name_violations(display_name);
    if !is_name_id(name_id) {
        violations.add(&["name-id", "invalid"], "1 to 64 characters of a-z, 0-9 and inner hyphens");
    }
    violations
}

/// The violations of a display name, which has 1 to 128 characters, no control characters.
#[must_use]
pub fn display_name_violations(text: &str) -> Violations {
    let mut violations = Violations::default();
    let violation = if text.trim().is_empty() {
        "too-short"
    } else if text.chars().count() > DISPLAY_NAME_CHARS_MAX {
        "too-long"
    } else if text.chars().any(char::is_control) {
        "invalid"
    } else {
        return violations;
    };
    violations.add(&["display-name", violation], "1 to 128 characters, no control characters");
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_addresses_are_plain() {
        for name in ["a", "my-game-2", &"x".repeat(64)] {
            assert!(is_name_id(name), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a_b", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_name_id(name), "{name}");
        }
    }

    #[test]
    fn names_for_people_are_any_text_of_a_line() {
        for name in ["1", "Frühling 2.0 🎮", &"ä".repeat(128)] {
            assert!(display_name_violations(name).is_empty(), "{name}");
        }
        for (name, violation) in
            [("", "too-short"), (" ", "too-short"), (&*"x".repeat(129), "too-long"), ("a\nb", "invalid")]
        {
            let found: Vec<_> = display_name_violations(name).joined().collect();
            assert_eq!(found, [format!("display-name/{violation}")], "{name}");
        }
    }
}

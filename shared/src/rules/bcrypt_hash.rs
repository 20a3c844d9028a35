//! Which passwords are bcrypt hashes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The lowest cost of bcrypt.
pub const COST_MIN: u32 = 4;
/// The highest cost of bcrypt.
pub const COST_MAX: u32 = 31;

/// Length of `$2b$` + cost + `$` + 22 salt + 31 hash characters.
const HASH_CHARS: usize = 60;
/// Last salt characters whose 4 unused bits are zero: 22 characters of 6 bits hold 128.
const LAST_SALT_CHARS: &[u8] = b".Oeu";
/// Last hash characters whose 2 unused bits are zero: 31 characters of 6 bits hold 184.
const LAST_HASH_CHARS: &[u8] = b".CGKOSWaeimquy26";

/// A bcrypt hash in canonical modular crypt form: `$2a$`, `$2b$` or `$2y$`, two-digit cost 04..31, `$`, 22
/// salt and 31 hash characters of the bcrypt alphabet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BcryptHash(String);

/// Text that is not a bcrypt hash of an allowed cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a bcrypt hash in canonical modular crypt form")]
pub struct NotBcrypt;

impl BcryptHash {
    /// A hash whose cost is at most `cost_max`.
    ///
    /// # Errors
    /// [`NotBcrypt`] for any other text.
    pub fn parse(text: &str, cost_max: u32) -> Result<Self, NotBcrypt> {
        // HashParts splits and checks the alphabet; it bounds neither the cost nor the prefix nor the unused
        // bits.
        let parts = bcrypt::HashParts::from_str(text).map_err(|_| NotBcrypt)?;
        let bytes = text.as_bytes();
        let has_form = bytes.len() == HASH_CHARS
            && ["$2a$", "$2b$", "$2y$"].iter().any(|prefix| text.starts_with(prefix))
            && bytes.get(4..6).is_some_and(|cost| cost.iter().all(u8::is_ascii_digit))
            && bytes.get(6) == Some(&b'$');
        let is_canonical = bytes.get(28).is_some_and(|last| LAST_SALT_CHARS.contains(last))
            && bytes.get(59).is_some_and(|last| LAST_HASH_CHARS.contains(last));
        let has_alphabet = bytes
            .get(7..)
            .is_some_and(|rest| rest.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'/')));
        let cost_allowed = (COST_MIN..=cost_max.min(COST_MAX)).contains(&parts.get_cost());
        if has_form && is_canonical && has_alphabet && cost_allowed {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotBcrypt)
        }
    }

    /// The hash, only for the store.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BcryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BcryptHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(cost: u32, prefix: &str) -> String {
        let hash = bcrypt::hash_with_salt("correct horse", cost, [7; 16]).unwrap();
        let version = match prefix {
            "2a" => bcrypt::Version::TwoA,
            "2y" => bcrypt::Version::TwoY,
            _ => bcrypt::Version::TwoB,
        };
        hash.format_for_version(version)
    }

    fn is_bcrypt(text: &str) -> bool {
        BcryptHash::parse(text, COST_MAX).is_ok()
    }

    #[test]
    fn hashes_made_by_the_bcrypt_crate_pass() {
        for (cost, prefix) in [(4, "2a"), (4, "2b"), (4, "2y"), (10, "2b"), (12, "2y")] {
            let hash = made(cost, prefix);
            assert!(is_bcrypt(&hash), "cost {cost}, {prefix}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let hash = made(4, "2b");
        let with = |at: usize, c: &str| format!("{}{c}{}", &hash[..at], &hash[at + 1..]);
        for text in [
            "",
            "correct horse",
            &hash.replacen("$2b$", "$2x$", 1),
            &hash.replacen("$2b$", "$2$", 1),
            &hash.replacen("$04$", "$03$", 1),
            &hash.replacen("$04$", "$00$", 1),
            &hash.replacen("$04$", "$32$", 1),
            &hash.replacen("$04$", "$99$", 1),
            &hash.replacen("$04$", "$+4$", 1),
            &hash.replacen("$04$", "$4$", 1),
            &hash[..59],
            &format!("{hash}A"),
            &format!("{hash}\n"),
            &with(20, "-"),
            &with(40, "_"),
            &with(40, "="),
            &with(28, "/"),
            &with(59, "/"),
        ] {
            assert!(!is_bcrypt(text), "{text:?}");
        }
    }

    #[test]
    fn a_deployment_may_lower_the_highest_cost() {
        assert!(BcryptHash::parse(&made(5, "2b"), 5).is_ok());
        assert!(BcryptHash::parse(&made(5, "2b"), 4).is_err());
    }

    #[test]
    fn a_hash_never_shows_in_debug_output() {
        let hash = BcryptHash::parse(&made(4, "2b"), COST_MAX).unwrap();
        assert_eq!(format!("{hash:?}"), "BcryptHash(..)");
    }
}

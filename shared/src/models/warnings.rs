//! Warnings: what in a request, though it is no error, may not do what its sender expects.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Warnings that a response lists; it counts the others.
const LISTED_MAX: usize = 8;
/// Longest text of a request that a warning shows, in characters.
const SHOWN_CHARS_MAX: usize = 64;
/// How alike an unknown and a known name must be, where 1 is equal.
const LIKENESS_MIN: f64 = 0.6;

/// A warning. Its text is printable ASCII, whatever the request has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A field of the body that the operation does not know.
    #[error("unknown field \"{}\"{}", Shown(path), Similar(*similar))]
    UnknownField {
        /// Its path.
        path: String,
        /// The field there with a similar name.
        similar: Option<&'static str>,
    },
    /// A query parameter that the operation does not know.
    #[error("unknown query parameter \"{}\"{}", Shown(name), Similar(*similar))]
    UnknownParameter {
        /// Its name.
        name: String,
        /// The parameter with a similar name.
        similar: Option<&'static str>,
    },
    /// A body for an operation that takes none.
    #[error("the body was ignored: this operation takes none")]
    BodyIgnored,
    /// A development token.
    #[error("the response to a development token is a mock: nothing was checked, matched or stored")]
    Mock,
    /// A game mode that the namespace's current version lacks, in a find with others.
    #[error("no game mode \"{}\" in the current version: only the others were searched", Shown(.0))]
    GameModeLeftOut(String),
    /// A removed player who cannot be recognised.
    #[error("the player may come back: without a limit of seats per IP address nobody is recognised")]
    NotKeptOut,
    /// A game server's address that only its own machine or network can reach.
    #[error("\"{}\" is no public address: players on other networks cannot connect", Shown(.0))]
    NotPublic(String),
}

impl Warning {
    /// The warning for the unknown field at `path` beside the fields `known`.
    #[must_use]
    pub fn unknown_field(path: &[String], known: &[&'static str]) -> Self {
        let similar = path.last().and_then(|name| similar(name, known));
        Self::UnknownField { path: path.join("."), similar }
    }

    /// The warning for the unknown query parameter `name` of an operation with the parameters `known`.
    #[must_use]
    pub fn unknown_parameter(name: &str, known: &[&'static str]) -> Self {
        Self::UnknownParameter { name: name.to_owned(), similar: similar(name, known) }
    }
}

/// The known name that is most like `name`, whose spelling may be of another language: `leaseSeconds`.
fn similar(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|letter| letter.is_ascii_alphanumeric());
        letters.map(|letter| letter.to_ascii_lowercase()).take(SHOWN_CHARS_MAX).collect()
    };
    let name = plain(name);
    let alike = known.iter().map(|known| (strsim::normalized_levenshtein(&name, &plain(known)), *known));
    let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some(nearest).filter(|(likeness, _)| *likeness >= LIKENESS_MIN).map(|(_, known)| known)
}

/// The beginning of a request's text, with escapes for what is not printable ASCII.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = SHOWN_CHARS_MAX;
        for letter in self.0.chars() {
            let escaped = letter.escape_default();
            match left.checked_sub(escaped.len()) {
                Some(rest) => left = rest,
                None => return f.write_str("..."),
            }
            write!(f, "{escaped}")?;
        }
        Ok(())
    }
}

struct Similar(Option<&'static str>);

impl fmt::Display for Similar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, " (did you mean \"{name}\"?)"))
    }
}

/// The warnings of one request.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    listed: Vec<Warning>,
    others: usize,
}

impl Warnings {
    /// Adds the warning that `make` returns, once.
    pub fn add(&self, make: impl FnOnce() -> Warning) {
        let mut collected = self.collected();
        // A body may have thousands of unknown fields.
        if collected.listed.len() == LISTED_MAX {
            collected.others += 1;
            return;
        }
        let warning = make();
        if !collected.listed.contains(&warning) {
            collected.listed.push(warning);
        }
    }

    /// All of them in one line of printable ASCII; `None` without any.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let collected = self.collected();
        let mut texts: Vec<_> = collected.listed.iter().map(ToString::to_string).collect();
        if collected.others > 0 {
            texts.push(format!("and {} more", collected.others));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["server_id", "region_id", "game_modes", "lease_seconds", "regions"];

    fn field(path: &[&str]) -> String {
        let path: Vec<_> = path.iter().map(|name| (*name).to_owned()).collect();
        Warning::unknown_field(&path, &KNOWN).to_string()
    }

    #[test]
    fn an_unknown_name_is_shown_with_the_one_that_it_resembles() {
        for (name, known) in [
            ("region", "regions"),
            ("game_mode", "game_modes"),
            ("leaseSeconds", "lease_seconds"),
            ("LEASE-SECONDS", "lease_seconds"),
            ("serverid", "server_id"),
        ] {
            assert_eq!(field(&[name]), format!("unknown field \"{name}\" (did you mean \"{known}\"?)"));
        }
        assert_eq!(field(&["party"]), "unknown field \"party\"");
        assert_eq!(
            field(&["captcha", "servr_id"]),
            "unknown field \"captcha.servr_id\" (did you mean \"server_id\"?)"
        );
        assert_eq!(field(&[""]), "unknown field \"\"");
    }

    #[test]
    fn no_text_of_a_request_leaves_its_quotes_or_its_line() {
        let hostile = "a\"\r\nset-cookie: x=1\r\n\r\n<b>\u{0}\u{7f}\u{e4}\u{1f600}";
        let shown = field(&[hostile]);
        assert!(shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{shown}");
        assert!(shown.starts_with("unknown field \"a\\\"\\r\\nset-cookie: x=1\\r\\n"), "{shown}");
        let long = field(&[&"\u{e4}".repeat(500)]);
        assert!(
            long.len() <= "unknown field \"\"...".len() + SHOWN_CHARS_MAX && long.contains("...\""),
            "{long}"
        );
        assert_eq!(field(&[&"x".repeat(64)]).matches('x').count(), 64);
    }

    #[test]
    fn a_line_has_each_warning_once_and_a_bound() {
        let warnings = Warnings::default();
        assert_eq!(warnings.line(), None);
        warnings.add(|| Warning::Mock);
        warnings.add(|| Warning::Mock);
        assert_eq!(warnings.line(), Some(Warning::Mock.to_string()));
        for n in 0..1_000 {
            warnings.add(|| Warning::GameModeLeftOut(format!("{n}{}", "\u{e4}".repeat(99))));
        }
        let line = warnings.line().unwrap();
        assert!(line.ends_with("; and 993 more") && line.len() < 1_500, "{line}");
    }
}

//! Violated rules of a request's values.

use std::fmt;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parts of its place, then the violation, such as `game_modes`, `arena`, `max_players`, `too-high`.
    pub path: Vec<String>,
    /// What the rule allows there.
    pub allowed: String,
}

impl Violation {
    /// Its path as one text.
    #[must_use]
    pub fn joined(&self) -> String {
        self.path.join("/")
    }
}

/// The path, and what is allowed there.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.joined(), self.allowed)
    }
}

/// Violated rules in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// Violations that a message shows; the metadata has the paths of all.
const SHOWN: usize = 5;

impl Violations {
    /// Adds the violation at `path`, where the rule allows what `allowed` says.
    pub fn add(&mut self, path: &[&str], allowed: impl Into<String>) {
        self.0.push(Violation { path: owned(path).collect(), allowed: allowed.into() });
    }

    /// Adds that the `value` of a field is outside of its bounds, if it is.
    pub fn add_unless_within(&mut self, field: &str, value: u32, min: u32, max: u32) {
        if value < min {
            self.add(&[field, "too-low"], format!("{min} to {max}"));
        } else if value > max {
            self.add(&[field, "too-high"], format!("{min} to {max}"));
        }
    }

    /// Adds `others`, the violations below `path`.
    pub fn add_below(&mut self, path: &[&str], others: Self) {
        let below = |other: Violation| Violation { path: owned(path).chain(other.path).collect(), ..other };
        self.0.extend(others.into_iter().map(below));
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each path as one text, its parts joined by `/`.
    pub fn joined(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Violation::joined)
    }
}

fn owned(path: &[&str]) -> impl Iterator<Item = String> {
    path.iter().map(|part| (*part).to_owned())
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The first ones, and how many more there are.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<_> = self.0.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = self.0.len().saturating_sub(SHOWN);
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        f.write_str(&shown.join("; "))
    }
}

/// Names in a message, of which it lists at most 16.
#[must_use]
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const LISTED_MAX: usize = 16;
    let (shown, others) = names.split_at(names.len().min(LISTED_MAX));
    let shown: Vec<_> = shown.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match (shown.join(", "), others.len()) {
        (shown, _) if shown.is_empty() => "none".to_owned(),
        (shown, 0) => shown,
        (shown, others) => format!("{shown} and {others} more"),
    }
}

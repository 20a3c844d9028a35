//! Violated rules of a request's values.

use std::fmt;

/// Violated rules in the order of the checks, each as a path: the parts of its place, then the violation,
/// such as `game_modes`, `arena`, `max_players`, `too-high`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Vec<String>>);

/// Paths that a message shows; the metadata has all of them.
const PATHS_SHOWN: usize = 5;

impl Violations {
    /// Adds the violation at `path`.
    pub fn add(&mut self, path: &[&str]) {
        self.0.push(owned(path).collect());
    }

    /// Adds `others`, the violations below `path`.
    pub fn add_below(&mut self, path: &[&str], others: Self) {
        self.0.extend(others.into_iter().map(|rest| owned(path).chain(rest).collect()));
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each as one text, its parts joined by `/`.
    pub fn joined(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|path| path.join("/"))
    }
}

fn owned(path: &[&str]) -> impl Iterator<Item = String> {
    path.iter().map(|part| (*part).to_owned())
}

impl IntoIterator for Violations {
    type Item = Vec<String>;
    type IntoIter = std::vec::IntoIter<Vec<String>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The first ones, and how many more there are.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<_> = self.joined().take(PATHS_SHOWN).collect();
        let more = self.0.len().saturating_sub(PATHS_SHOWN);
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        f.write_str(&shown.join(", "))
    }
}

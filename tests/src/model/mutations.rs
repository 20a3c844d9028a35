//! Each condition taken away, one at a time: which invariant fails then, and in which configuration?
//!
//! A condition matters to a configuration only where it is the only one that refuses some write; so it is taken away
//! in those configurations alone, the smallest first.

use super::{Configuration, Outcomes, check};
use crate::conditions::{Condition, Write};

/// Why nothing fails without a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something else already makes sure of it.
    Needless(&'static str),
    /// It has a purpose that no configuration shows.
    Unproved(&'static str),
}

/// What became of a condition's removal.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The condition.
    pub condition: Condition,
    /// The configuration that fails without it, and the invariant.
    pub broken: Option<(&'static str, &'static str)>,
    /// Whether it ever is the only one that refuses a write.
    pub is_decisive: bool,
}

/// Conditions that the model does not evaluate, and why.
pub const LEFT_OUT: &[(Write, &str, &str)] = &[
    (Write::GrowShards, "attribute_not_exists(#joinable_from) OR #joinable_from <= :shards", SHARDS),
    (Write::RetireShards, "#joinable_from = :shards", SHARDS),
    (Write::RetireShards, "#renewed_at <= :stale", SHARDS),
    (Write::NoteState, "attribute_exists(#server)", "a lobby's state is no part of matching: no invariant speaks of it"),
];

const SHARDS: &str = "the index is a hint, which here shows anything";

/// Conditions without which nothing fails, and why.
pub const VERDICTS: &[(Write, &str, Verdict)] = &[
];

impl Found {
    /// Why nothing fails without it, if that is known.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let Condition { write, clause } = self.condition;
        VERDICTS.iter().find(|told| (told.0, told.1) == (write, clause)).map(|told| told.2)
    }

    /// Whether outcome and verdict contradict each other.
    #[must_use]
    pub fn is_unexpected(&self) -> bool {
        self.broken.is_some() == self.verdict().is_some()
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> String {
        let Condition { write, clause } = self.condition;
        let (invariant, configuration) = match (self.broken, self.verdict()) {
            (Some((configuration, invariant)), _) => (invariant.to_owned(), configuration),
            (None, Some(Verdict::Needless(why))) => (format!("none: needless, because {why}"), ""),
            (None, Some(Verdict::Unproved(why))) => (format!("none: unproved, because {why}"), ""),
            (None, None) if self.is_decisive => ("none".to_owned(), ""),
            (None, None) => ("none, and never alone in refusing".to_owned(), ""),
        };
        format!("| {write} | `{clause}` | {invariant} | {configuration} |")
    }
}

/// Why the model does not evaluate `condition`, if so.
#[must_use]
pub fn left_out(condition: Condition) -> Option<&'static str> {
    let Condition { write, clause } = condition;
    LEFT_OUT.iter().find(|left| (left.0, left.1) == (write, clause)).map(|left| left.2)
}

/// Takes `condition` away in each configuration whose outcome says that it matters, until an invariant fails.
#[must_use]
pub fn search(condition: Condition, outcomes: &[(Configuration, Outcomes)]) -> Found {
    let mut decided: Vec<_> =
        outcomes.iter().filter(|(_, outcomes)| outcomes.decisive.contains(&condition)).collect();
    decided.sort_by_key(|(_, outcomes)| outcomes.states);
    let broken = decided.iter().find_map(|(configuration, _)| {
        let violation = check(*configuration, Some(condition)).violation?;
        Some((configuration.name, violation.name()))
    });
    Found { condition, broken, is_decisive: !decided.is_empty() }
}

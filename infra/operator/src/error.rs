//! Errors of the command, worded for its user.

use std::{fmt, path::PathBuf};

use shared::{
    cloud::provision::ProvisionError,
    models::{errors::Error, ids::RegionId},
};

use crate::deployment::TargetError;

/// An error of the command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file that is not a version configuration.
    #[error("{} is no version configuration: at `{at}`: {problem}", path.display())]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The place in it.
        at: String,
        /// Its line, where it is known.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
    },
    /// A file that is not an exported game.
    #[error("{} is no exported game: at `{at}`: {problem}", path.display())]
    InvalidGameFile {
        /// The file.
        path: PathBuf,
        /// The place in it.
        at: String,
        /// What is wrong there.
        problem: String,
    },
    /// A version configuration, or an exported game, that breaks rules.
    #[error("{} is not valid: {}", path.display(), listed(problems))]
    BrokenRules {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problems: Vec<Problem>,
    },
    /// A region given twice.
    #[error("the region `{0}` is given twice")]
    RepeatedRegion(RegionId),
    /// The command names something that does not exist.
    #[error("there is no {what} `{name}`; {hint}")]
    Unknown {
        /// Its kind.
        what: &'static str,
        /// Its name in the command.
        name: String,
        /// Advice.
        hint: String,
    },
    /// Arguments that a rule refuses.
    #[error("{0}")]
    Refused(String),
    /// A check found problems.
    #[error("{0}")]
    Unhealthy(String),
    /// The game cannot be created.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The deployment cannot be reached.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An operation's refusal, or a failure of the store.
    #[error("{}", message(.0))]
    Operation(#[from] Error),
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, where it is known.
    pub line: Option<usize>,
    /// The path to it, whose end says what is wrong, and what is allowed there.
    pub at: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.at)
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn message(error: &Error) -> String {
    let cause = error.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
    let hint = match error {
        Error::Unavailable(_) => "; try `muster doctor`",
        _ => "",
    };
    format!("{error}{cause}{hint}")
}

//! Errors of the command, worded for its user, with a code and a status for programs.

use std::{fmt, io::ErrorKind, path::PathBuf};

use shared::{
    cloud::provision::ProvisionError,
    models::{errors::Error, ids::RegionId},
    store::failures::is_denial,
};

use crate::reach::TargetError;

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
    /// A file of another kind: a version file in place of an exported game or the reverse, a token, or JSON
    /// of something else.
    #[error("{} is {is}; it must be {wanted}", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Its kind, and the command that reads it.
        is: String,
        /// The kind that is wanted.
        wanted: &'static str,
    },
    /// A version file or an exported game with mistakes, all of which it lists.
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
    #[error("there is no {what} `{}`; {hint}", shortened(name))]
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
    /// A command line that cannot be run as it is written.
    #[error("{0}")]
    Usage(String),
    /// The agent's calls were not accepted for three leases.
    #[error("Muster has accepted no heartbeat for {seconds} s: {last}")]
    Away {
        /// The time.
        seconds: u64,
        /// The last refusal.
        last: String,
    },
    /// The process that runs all lobbies ended by itself.
    #[error("the game server ended: {0}")]
    ServerEnded(String),
    /// Nobody agreed to what ends something for players or cannot be undone.
    #[error("{0}")]
    NotConfirmed(String),
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

/// The exit status of the command, by what a program can do about the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// A problem that `doctor` found, or a defect.
    Failed = 1,
    /// The command line cannot be run as it is written.
    Usage = 2,
    /// Something that it names is not there.
    NotFound = 3,
    /// A rule refuses it.
    Refused = 4,
    /// The deployment cannot be reached now.
    Unreachable = 5,
    /// These credentials may not do it.
    NotAllowed = 6,
}

impl CommandError {
    /// The exit status, and a stable code: that of the API where the API has one for the same refusal.
    #[must_use]
    pub fn status_and_code(&self) -> (Status, &'static str) {
        match self {
            Self::UnreadableFile { error, .. } if error.kind() == ErrorKind::NotFound => {
                (Status::NotFound, "FILE_NOT_FOUND")
            }
            Self::UnreadableFile { .. } => (Status::Usage, "FILE_UNREADABLE"),
            Self::OtherFile { .. } | Self::BrokenRules { .. } => (Status::Refused, "FILE_INVALID"),
            Self::RepeatedRegion(_) | Self::Usage(_) => (Status::Usage, "USAGE"),
            Self::Away { .. } => (Status::Unreachable, "UNREACHABLE"),
            Self::ServerEnded(_) => (Status::Failed, "SERVER_ENDED"),
            Self::Unknown { .. } => (Status::NotFound, "NOT_FOUND"),
            Self::Refused(_) => (Status::Refused, "REFUSED"),
            Self::NotConfirmed(_) => (Status::Refused, "NOT_CONFIRMED"),
            Self::Unhealthy(_) => (Status::Failed, "UNHEALTHY"),
            Self::Provision(ProvisionError::Store(error)) | Self::Operation(error) => of_operation(error),
            Self::Provision(ProvisionError::NameTaken(_)) => (Status::Refused, "CLOUD_NAME_TAKEN"),
            Self::Provision(_) => (Status::Refused, "VALIDATION_ERROR"),
            Self::Target(error) => match error {
                TargetError::Missing | TargetError::NoRegion => (Status::Usage, "USAGE"),
                TargetError::NoStack { .. } => (Status::NotFound, "NOT_FOUND"),
                TargetError::Denied(_) => (Status::NotAllowed, "NOT_ALLOWED"),
                TargetError::Unreachable(_)
                | TargetError::NoLocalStack { .. }
                | TargetError::NotServed { .. } => (Status::Unreachable, "UNREACHABLE"),
                TargetError::NoSigningKey(_) => (Status::Failed, "NO_SIGNING_KEY"),
            },
        }
    }
}

fn of_operation(error: &Error) -> (Status, &'static str) {
    let (http, code) = error.status_and_code();
    match (error, http.as_u16()) {
        _ if is_denial(error) => (Status::NotAllowed, "NOT_ALLOWED"),
        (Error::LobbyNotFound | Error::ServerNotFound, _) | (_, 404) => (Status::NotFound, code),
        (_, 401 | 403) => (Status::NotAllowed, code),
        (_, 500) => (Status::Failed, code),
        (_, 503) => (Status::Unreachable, code),
        _ => (Status::Refused, code),
    }
}

/// The most characters of a name that a message repeats.
const NAME_CHARS_MAX: usize = 128;

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
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
    if is_denial(error) {
        return format!("your credentials may not do this: {}", error.cause().unwrap_or_default());
    }
    let cause = error.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
    let hint = match error {
        Error::Unavailable(_) => "; try `muster doctor`",
        _ => "",
    };
    format!("{error}{cause}{hint}")
}

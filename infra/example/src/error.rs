//! Why a session fails.

use std::{io, time::Duration};

use tokio::task::JoinError;

use muster_client::Error;

/// Why a session failed.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// There is no local stack.
    #[error("no local stack: {0}; start it with `muster-local`")]
    NoLocalStack(reqwest::Error),
    /// A call of the service failed.
    #[error("{code} {0}", code = .0.code.as_deref().unwrap_or_default())]
    Service(#[from] Error),
    /// The setup of the game failed.
    #[error("the game was not set up: {0}")]
    Setup(#[from] reqwest::Error),
    /// The game server cannot listen.
    #[error("the game server cannot listen: {0}")]
    Listen(io::Error),
    /// Nobody had it started.
    #[error("Muster starts this, with variables such as MUSTER_START_ID")]
    NotStarted,
    /// Signals cannot end it.
    #[error("it cannot listen for signals: {0}")]
    Signals(io::Error),
    /// A bot cannot reach the game server.
    #[error("bot {0} cannot reach the game server: {1}")]
    Unreachable(u32, io::Error),
    /// A bot got this instead of a welcome.
    #[error("bot {0} was not welcome: `{1}`")]
    Unwelcome(u32, String),
    /// The bots played, or the lobbies lived, for too long.
    #[error("games had not ended after {} s, and were stopped", .0.as_secs())]
    Unfinished(Duration),
    /// A defect of the example.
    #[error("the example broke: {0}")]
    Broken(#[from] JoinError),
}

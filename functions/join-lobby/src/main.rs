//! The Lambda function of lobbies.join.

use std::process::ExitCode;

use join_lobby::JoinLobby;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<JoinLobby>()
}

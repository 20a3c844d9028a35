//! The Lambda function of servers.end-lobby.

use std::process::ExitCode;

use end_lobby::EndLobby;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<EndLobby>()
}

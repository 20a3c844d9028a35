//! The Lambda function of lobbies.create.

use std::process::ExitCode;

use create_lobby::CreateLobby;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateLobby>()
}

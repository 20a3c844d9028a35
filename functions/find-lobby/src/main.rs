//! The Lambda function of lobbies.find.

use std::process::ExitCode;

use find_lobby::FindLobby;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<FindLobby>()
}

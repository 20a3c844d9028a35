//! The Lambda function of lobbies.ready.

use std::process::ExitCode;

use set_lobby_ready::SetLobbyReady;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<SetLobbyReady>()
}

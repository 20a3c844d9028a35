//! The Lambda function of lobbies.state.

use std::process::ExitCode;

use get_lobby_state::GetLobbyState;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetLobbyState>()
}

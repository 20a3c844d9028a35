//! The Lambda function of lobbies.state.

use std::process::ExitCode;

use set_lobby_state::SetLobbyState;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<SetLobbyState>()
}

//! The Lambda function of players.disconnected.

use std::process::ExitCode;

use disconnect_player::DisconnectPlayer;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<DisconnectPlayer>()
}

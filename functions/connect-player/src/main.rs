//! The Lambda function of players.connected.

use std::process::ExitCode;

use connect_player::ConnectPlayer;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<ConnectPlayer>()
}

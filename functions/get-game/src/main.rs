//! The Lambda function of games.

use std::process::ExitCode;

use get_game::GetGame;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetGame>()
}

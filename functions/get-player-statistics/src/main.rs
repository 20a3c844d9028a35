//! The Lambda function of players.statistics.

use std::process::ExitCode;

use get_player_statistics::GetPlayerStatistics;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetPlayerStatistics>()
}

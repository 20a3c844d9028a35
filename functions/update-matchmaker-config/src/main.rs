//! The Lambda function of mm-config.

use std::process::ExitCode;

use shared::function::operation::run;
use update_matchmaker_config::UpdateMatchmakerConfig;

fn main() -> ExitCode {
    run::<UpdateMatchmakerConfig>()
}

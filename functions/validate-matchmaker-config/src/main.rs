//! The Lambda function of mm-config/validate.

use std::process::ExitCode;

use shared::function::operation::run;
use validate_matchmaker_config::ValidateMatchmakerConfig;

fn main() -> ExitCode {
    run::<ValidateMatchmakerConfig>()
}

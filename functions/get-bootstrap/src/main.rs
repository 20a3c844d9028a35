//! The Lambda function of bootstrap.

use std::process::ExitCode;

use get_bootstrap::GetBootstrap;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetBootstrap>()
}

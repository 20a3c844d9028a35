//! The Lambda function of versions/validate.

use std::process::ExitCode;

use shared::function::operation::run;
use validate_version::ValidateVersion;

fn main() -> ExitCode {
    run::<ValidateVersion>()
}

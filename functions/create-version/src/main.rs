//! The Lambda function of versions.

use std::process::ExitCode;

use create_version::CreateVersion;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateVersion>()
}

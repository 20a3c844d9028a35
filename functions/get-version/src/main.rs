//! The Lambda function of versions/{version_id}.

use std::process::ExitCode;

use get_version::GetVersion;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetVersion>()
}

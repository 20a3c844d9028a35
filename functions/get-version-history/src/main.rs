//! The Lambda function of version-history.

use std::process::ExitCode;

use get_version_history::GetVersionHistory;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetVersionHistory>()
}

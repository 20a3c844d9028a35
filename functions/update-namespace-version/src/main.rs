//! The Lambda function of version.

use std::process::ExitCode;

use shared::function::operation::run;
use update_namespace_version::UpdateNamespaceVersion;

fn main() -> ExitCode {
    run::<UpdateNamespaceVersion>()
}

//! The Lambda function of namespaces.

use std::process::ExitCode;

use create_namespace::CreateNamespace;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateNamespace>()
}

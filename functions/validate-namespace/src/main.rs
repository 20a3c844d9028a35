//! The Lambda function of namespaces/validate.

use std::process::ExitCode;

use shared::function::operation::run;
use validate_namespace::ValidateNamespace;

fn main() -> ExitCode {
    run::<ValidateNamespace>()
}

//! The Lambda function of namespaces/{namespace_id}.

use std::process::ExitCode;

use get_namespace::GetNamespace;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<GetNamespace>()
}

//! The Lambda function of domains/{domain}.

use std::process::ExitCode;

use delete_domain::DeleteDomain;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<DeleteDomain>()
}

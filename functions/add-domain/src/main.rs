//! The Lambda function of domains.

use std::process::ExitCode;

use add_domain::AddDomain;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<AddDomain>()
}

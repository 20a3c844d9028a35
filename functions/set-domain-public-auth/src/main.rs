//! The Lambda function of domain-public-auth.

use std::process::ExitCode;

use set_domain_public_auth::SetDomainPublicAuth;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<SetDomainPublicAuth>()
}

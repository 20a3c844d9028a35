//! The Lambda function of cdn-auth.

use std::process::ExitCode;

use set_cdn_auth_type::SetCdnAuthType;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<SetCdnAuthType>()
}

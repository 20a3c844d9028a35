//! The Lambda function of auth-user.

use std::process::ExitCode;

use shared::function::operation::run;
use update_cdn_auth_user::UpdateCdnAuthUser;

fn main() -> ExitCode {
    run::<UpdateCdnAuthUser>()
}

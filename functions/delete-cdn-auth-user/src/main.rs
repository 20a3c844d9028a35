//! The Lambda function of auth-user/{user}.

use std::process::ExitCode;

use delete_cdn_auth_user::DeleteCdnAuthUser;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<DeleteCdnAuthUser>()
}

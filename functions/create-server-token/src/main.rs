//! The Lambda function of tokens/server.

use std::process::ExitCode;

use create_server_token::CreateServerToken;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateServerToken>()
}

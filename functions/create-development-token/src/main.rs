//! The Lambda function of tokens/development.

use std::process::ExitCode;

use create_development_token::CreateDevelopmentToken;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateDevelopmentToken>()
}

//! The Lambda function of tokens/public.

use std::process::ExitCode;

use create_public_token::CreatePublicToken;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreatePublicToken>()
}

//! The Lambda function of tokens/cloud.

use std::process::ExitCode;

use create_cloud_token::CreateCloudToken;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<CreateCloudToken>()
}

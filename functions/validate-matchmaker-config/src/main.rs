//! The Lambda function of mm-config/validate.

use shared::function::{Function, operation};
use validate_matchmaker_config::ValidateMatchmakerConfig;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(ValidateMatchmakerConfig::new(function.cloud_auth())).await
}

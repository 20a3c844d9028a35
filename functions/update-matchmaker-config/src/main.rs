//! The Lambda function of mm-config.

use shared::function::{Function, operation};
use update_matchmaker_config::UpdateMatchmakerConfig;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(UpdateMatchmakerConfig::new(function.cloud_auth(), function.store)).await
}

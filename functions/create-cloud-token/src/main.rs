//! The Lambda function of tokens/cloud.

use create_cloud_token::CreateCloudToken;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreateCloudToken::new(function.cloud_auth(), function.issuer())).await
}

//! The Lambda function of tokens/development.

use create_development_token::CreateDevelopmentToken;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreateDevelopmentToken::new(function.cloud_auth(), function.issuer())).await
}

//! The Lambda function of tokens/public.

use create_public_token::CreatePublicToken;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreatePublicToken::new(function.cloud_auth(), function.issuer())).await
}

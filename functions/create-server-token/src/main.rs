//! The Lambda function of tokens/server.

use create_server_token::CreateServerToken;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreateServerToken::new(function.cloud_auth(), function.issuer())).await
}

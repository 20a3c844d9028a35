//! The Lambda function of cdn-auth.

use set_cdn_auth_type::SetCdnAuthType;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(SetCdnAuthType::new(function.cloud_auth(), function.store)).await
}

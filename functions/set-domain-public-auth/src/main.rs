//! The Lambda function of domain-public-auth.

use set_domain_public_auth::SetDomainPublicAuth;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(SetDomainPublicAuth::new(function.cloud_auth(), function.store)).await
}

//! The Lambda function of domains.

use add_domain::AddDomain;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(AddDomain::new(function.cloud_auth(), function.store, function.ambient)).await
}

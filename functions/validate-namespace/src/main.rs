//! The Lambda function of namespaces/validate.

use shared::function::{Function, operation};
use validate_namespace::ValidateNamespace;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(ValidateNamespace::new(function.cloud_auth(), function.store)).await
}

//! The Lambda function of namespaces.

use create_namespace::CreateNamespace;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreateNamespace::new(function.cloud_auth(), function.store, function.ambient)).await
}

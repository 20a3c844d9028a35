//! The Lambda function of namespaces/{namespace_id}.

use get_namespace::GetNamespace;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetNamespace::new(function.cloud_auth(), function.store)).await
}

//! The Lambda function of versions.

use create_version::CreateVersion;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(CreateVersion::new(function.cloud_auth(), function.store, function.ambient)).await
}

//! The Lambda function of versions.

use create_version::CreateVersion;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    let (auth, secrets) = (function.cloud_auth(), function.secrets()?);
    http::serve(CreateVersion::new(auth, function.store, secrets, function.ambient)).await
}

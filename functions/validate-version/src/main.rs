//! The Lambda function of versions/validate.

use shared::function::{Function, operation};
use validate_version::ValidateVersion;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(ValidateVersion::new(function.cloud_auth(), function.store)).await
}

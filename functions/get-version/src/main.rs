//! The Lambda function of versions/{version_id}.

use get_version::GetVersion;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetVersion::new(function.cloud_auth(), function.store)).await
}

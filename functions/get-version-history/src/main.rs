//! The Lambda function of version-history.

use get_version_history::GetVersionHistory;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetVersionHistory::new(function.cloud_auth(), function.store)).await
}

//! The Lambda function of version.

use shared::function::{Function, operation};
use update_namespace_version::UpdateNamespaceVersion;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(UpdateNamespaceVersion::new(function.cloud_auth(), function.store, function.ambient))
        .await
}

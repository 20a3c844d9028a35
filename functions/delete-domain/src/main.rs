//! The Lambda function of domains/{domain}.

use delete_domain::DeleteDomain;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(DeleteDomain::new(function.cloud_auth(), function.store)).await
}

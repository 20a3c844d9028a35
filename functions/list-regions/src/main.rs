//! The Lambda function of regions.

use list_regions::ListRegions;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(ListRegions::new(function.matchmaker_auth(), function.edge_secret())).await
}

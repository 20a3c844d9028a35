//! The Lambda function of servers.deregister.

use deregister_server::DeregisterServer;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(DeregisterServer::new(function.matchmaker_auth(), function.store, function.ambient))
        .await
}

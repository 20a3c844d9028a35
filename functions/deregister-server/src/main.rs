//! The Lambda function of servers.deregister.

use deregister_server::DeregisterServer;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(DeregisterServer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

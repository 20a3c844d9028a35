//! The Lambda function of servers.register.

use register_server::RegisterServer;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(RegisterServer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

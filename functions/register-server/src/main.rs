//! The Lambda function of servers.register.

use register_server::RegisterServer;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(RegisterServer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

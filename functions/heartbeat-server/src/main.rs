//! The Lambda function of servers.heartbeat.

use heartbeat_server::HeartbeatServer;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(HeartbeatServer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

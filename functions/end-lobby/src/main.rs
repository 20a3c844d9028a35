//! The Lambda function of servers.end-lobby.

use end_lobby::EndLobby;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(EndLobby::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

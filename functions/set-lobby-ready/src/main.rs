//! The Lambda function of lobbies.ready.

use set_lobby_ready::SetLobbyReady;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(SetLobbyReady::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

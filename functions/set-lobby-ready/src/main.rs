//! The Lambda function of lobbies.ready.

use set_lobby_ready::SetLobbyReady;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(SetLobbyReady::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

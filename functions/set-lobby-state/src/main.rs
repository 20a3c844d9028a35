//! The Lambda function of lobbies.state.

use set_lobby_state::SetLobbyState;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(SetLobbyState::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

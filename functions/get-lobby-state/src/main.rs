//! The Lambda function of lobbies.state.

use get_lobby_state::GetLobbyState;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetLobbyState::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

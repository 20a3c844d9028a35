//! The Lambda function of lobbies.closed.

use set_lobby_closed::SetLobbyClosed;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(SetLobbyClosed::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

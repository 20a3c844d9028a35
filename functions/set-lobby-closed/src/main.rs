//! The Lambda function of lobbies.closed.

use set_lobby_closed::SetLobbyClosed;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(SetLobbyClosed::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

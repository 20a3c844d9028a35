//! The Lambda function of lobbies.join.

use join_lobby::JoinLobby;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(JoinLobby::new(function.matchmaker_auth(), function.matchmaker(), function.ambient)).await
}

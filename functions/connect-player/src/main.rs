//! The Lambda function of players.connected.

use connect_player::ConnectPlayer;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(ConnectPlayer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

//! The Lambda function of players.connected.

use connect_player::ConnectPlayer;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(ConnectPlayer::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

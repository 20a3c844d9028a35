//! The Lambda function of players.disconnected.

use disconnect_player::DisconnectPlayer;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(DisconnectPlayer::new(function.matchmaker_auth(), function.store, function.ambient))
        .await
}

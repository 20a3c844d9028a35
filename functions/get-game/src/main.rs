//! The Lambda function of games.

use get_game::GetGame;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetGame::new(function.cloud_auth(), function.store)).await
}

//! The Lambda function of players.statistics.

use get_player_statistics::GetPlayerStatistics;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(GetPlayerStatistics::new(function.matchmaker_auth(), function.store, function.ambient))
        .await
}

//! The Lambda function of lobbies.join.

use join_lobby::JoinLobby;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    let (screening, edge_secret) = (function.screening()?, function.edge_secret());
    operation::serve(JoinLobby::new(
        function.matchmaker_auth(),
        function.matchmaker(),
        screening,
        function.ambient,
        edge_secret,
    ))
    .await
}

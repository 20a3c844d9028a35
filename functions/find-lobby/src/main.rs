//! The Lambda function of lobbies.find.

use find_lobby::FindLobby;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    let (screening, edge_secret) = (function.screening()?, function.edge_secret());
    operation::serve(FindLobby::new(
        function.matchmaker_auth(),
        function.matchmaker(),
        screening,
        function.ambient,
        edge_secret,
    ))
    .await
}

//! The Lambda function of lobbies.create.

use create_lobby::CreateLobby;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    let (screening, edge_secret) = (function.screening()?, function.edge_secret());
    operation::serve(CreateLobby::new(
        function.matchmaker_auth(),
        function.matchmaker(),
        screening,
        function.ambient,
        edge_secret,
    ))
    .await
}

//! The Lambda function of lobbies.list.

use list_lobbies::ListLobbies;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    let (auth, edge_secret) = (function.matchmaker_auth(), function.edge_secret());
    operation::serve(ListLobbies::new(auth, function.store, function.ambient, edge_secret)).await
}

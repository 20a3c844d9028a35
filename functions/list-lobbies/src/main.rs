//! The Lambda function of lobbies.list.

use list_lobbies::ListLobbies;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(ListLobbies::new(function.matchmaker_auth(), function.store, function.ambient)).await
}

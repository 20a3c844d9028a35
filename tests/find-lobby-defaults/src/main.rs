//! The Lambda function of lobbies.find over the client that aws-config and the SDK's default features make.

use std::convert::Infallible;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use find_lobby::FindLobby;
use lambda_http::service_fn;
use shared::{
    base::{ambient::Ambient, log},
    function::{
        config::Environment,
        instance::Instance,
        metrics::Counter,
        operation::{Operation as _, answer_counted},
    },
    store::client::Store,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    log::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let counter = Counter::of(&environment);
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let store = Store::new(Client::new(&config), environment.tables());
    // Within init, as the function that this is compared with.
    store.open_connection().await?;
    let instance = Instance::over(store, environment.token_keys()?, ambient.clone());
    let find = FindLobby::start(&instance.with_environment(environment))?;
    lambda_http::run(service_fn(async |event| {
        let (response, counts) = answer_counted(&find, event, &ambient, None).await;
        if let Some(line) = counter.as_ref().and_then(|it| it.line(FindLobby::NAME, counts, ambient.now())) {
            log::print(&line);
        }
        Ok::<_, Infallible>(response)
    }))
    .await
}

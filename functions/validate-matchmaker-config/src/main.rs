//! The Lambda function of mm-config/validate.

use shared::{ambient::Ambient, auth::CloudAuth, config::Environment, http, telemetry};
use validate_matchmaker_config::ValidateMatchmakerConfig;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let (store, keys) = (environment.store()?, environment.token_keys()?);
    store.warm_up().await;
    http::serve(ValidateMatchmakerConfig::new(CloudAuth::new(store, keys, ambient))).await
}

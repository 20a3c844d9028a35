//! The Lambda function of cdn-auth.

use set_cdn_auth_type::SetCdnAuthType;
use shared::{ambient::Ambient, auth::CloudAuth, config::Environment, http, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let (store, keys) = (environment.store()?, environment.token_keys()?);
    store.warm_up().await;
    http::serve(SetCdnAuthType::new(CloudAuth::new(store.clone(), keys, ambient), store)).await
}

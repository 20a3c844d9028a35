//! The Lambda function of version.

use shared::{ambient::Ambient, auth::CloudAuth, config::Environment, http, telemetry};
use update_namespace_version::UpdateNamespaceVersion;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let (store, keys) = (environment.store()?, environment.token_keys()?);
    store.warm_up().await;
    http::serve(UpdateNamespaceVersion::new(
        CloudAuth::new(store.clone(), keys, ambient.clone()),
        store,
        ambient,
    ))
    .await
}

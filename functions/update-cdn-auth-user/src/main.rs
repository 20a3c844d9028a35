//! The Lambda function of auth-user.

use shared::{
    ambient::Ambient, auth::CloudAuth, config::Environment, http, rules::bcrypt_hash::COST_MAX, telemetry,
};
use update_cdn_auth_user::UpdateCdnAuthUser;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let (store, keys) = (environment.store()?, environment.token_keys()?);
    // MUSTER_BCRYPT_MAX_COST: the highest bcrypt cost accepted; bcrypt's own limit when absent.
    let cost_max = environment.parsed("MUSTER_BCRYPT_MAX_COST")?.unwrap_or(COST_MAX);
    store.warm_up().await;
    http::serve(UpdateCdnAuthUser::new(CloudAuth::new(store.clone(), keys, ambient), store, cost_max)).await
}

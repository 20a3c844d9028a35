//! The Lambda function of lobbies.find.

use std::sync::Arc;

use find_lobby::FindLobby;
use shared::{
    ambient::Ambient,
    config::Environment,
    http,
    matchmaking::Matchmaker,
    settings_cache::{SETTINGS_AGE_MAX, SettingsCache},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    let (environment, ambient) = (Environment::of_process(), Ambient::system());
    let (store, keys) = (environment.store()?, environment.token_keys()?);
    let edge_secret = environment.optional("MUSTER_EDGE_SECRET");
    store.warm_up().await;
    let settings = Arc::new(SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
    let matchmaker = Matchmaker::new(store, Arc::clone(&settings), ambient.clone());
    http::serve(FindLobby::new(settings, matchmaker, keys, ambient, edge_secret)).await
}

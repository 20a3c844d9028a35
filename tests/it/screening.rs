//! Captchas and studios' own verification: real requests to servers on this machine that behave as providers
//! and backends do, or as they should not.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use harness::{Answer, TestGame, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::{
    cloud::provision::add_version,
    models::version::VersionConfig,
    outside::{endpoints::Outside, web_client::Reach},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Notify,
};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{method, path},
};

mod asking;
mod captcha;
mod guard;
mod secrets;
mod verification;

/// Those outside: all on this machine.
pub fn outside(provider: &str) -> Outside {
    Outside {
        hcaptcha_url: format!("{provider}/hcaptcha"),
        turnstile_url: format!("{provider}/turnstile"),
        reach: Reach::Anywhere,
        ..Outside::default()
    }
}

/// A captcha of a provider.
pub fn captcha(provider: &str, requests: u32, ttl: Duration) -> Value {
    json!({
        "requests_before_reverify": requests,
        "verification_ttl": u64::try_from(ttl.as_millis()).unwrap(),
        provider: { "site_key": "site-key", "secret_key": "captcha-secret" },
    })
}

/// A mode whose ways in are all open and verified at `url`, if there is one.
pub fn mode(url: Option<&str>) -> Value {
    let verification = url.map(|url| json!({ "url": url, "headers": { "x-secret": "header-secret" } }));
    let action = json!({ "enabled": true, "verification": verification });
    json!({
        "regions": ["fra", "nyc"], "max_players": 10, "taggable": true, "allow_dynamic_max_players": true,
        "actions": { "find": action, "join": action, "create": action },
    })
}

/// A game whose namespace runs a version of `modes` with `captcha`. Its URLs are of this machine, so it is
/// not validated.
pub async fn game(stack: &TestStack, name: &str, modes: Value, captcha: Value) -> TestGame {
    let plain = json!({ "arena": { "regions": ["fra"], "max_players": 10 } });
    let game = stack.make_game(name, plain, 1_000, 100).await;
    run_version(stack, &game, json!({ "game_modes": modes, "captcha": captcha })).await;
    game
}

/// Has the game's namespace run a version of `config`.
pub async fn run_version(stack: &TestStack, game: &TestGame, config: Value) {
    let config: VersionConfig = serde_json::from_value(config).unwrap();
    let (store, ambient) = (stack.store(), stack.ambient());
    let version = add_version(store, &ambient, game.game_id(), "2".to_owned(), config).await.unwrap();
    let path = format!("/cloud/games/{}/namespaces/{}/version", game.game_id(), game.namespace_id());
    let token = Some(game.created.cloud_token.reveal());
    let body = json!({ "version_id": version.version_id }).to_string();
    stack.call(Method::PUT, &path, token, body).await.expect_ok();
}

/// A find of the arena, with an answer to a captcha if there is one.
pub fn find(answer: Option<(&str, &str)>) -> Value {
    let captcha = answer.map(|(provider, response)| json!({ provider: { "client_response": response } }));
    json!({ "game_modes": ["arena"], "captcha": captcha })
}

/// The server gives `response` to every request at `at`.
pub async fn answering(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(method("POST")).and(path(at)).respond_with(response).mount(server).await;
}

/// The form of each request to a provider.
pub async fn forms(server: &MockServer) -> Vec<BTreeMap<String, String>> {
    let requests = server.received_requests().await.unwrap();
    let form = |body: &[u8]| url::form_urlencoded::parse(body).into_owned().collect();
    requests.iter().map(|request| form(&request.body)).collect()
}

/// No lobby was made, so no seat was taken.
pub async fn assert_no_seat(stack: &TestStack, game: &TestGame, at: &str) {
    assert!(stack.all_lobbies(game.namespace_id()).await.is_empty(), "{at}: a seat was taken");
}

/// A server that reads a request of each connection, sends `bytes` and then nothing, with the connection left
/// open; and a sign for each time that it did.
pub async fn stalling(bytes: Vec<u8>) -> (String, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sent, sign) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let answered = Arc::clone(&sign);
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let (bytes, answered, never) = (bytes.clone(), Arc::clone(&answered), Arc::clone(&sent));
            tokio::spawn(async move {
                let mut request = [0; 4_096];
                let _read = connection.read(&mut request).await;
                let _sent = connection.write_all(&bytes).await;
                answered.notify_one();
                never.notified().await;
            });
        }
    });
    (url, sign)
}

/// A find that waits for an answer which does not come, until five seconds have passed.
pub async fn find_in_vain(stack: &TestStack, game: &TestGame, body: Value, sign: &Notify) -> Answer {
    let time_passes = async {
        sign.notified().await;
        stack.clock.advance(Duration::from_secs(5));
    };
    tokio::join!(game.find(stack, body), time_passes).0
}

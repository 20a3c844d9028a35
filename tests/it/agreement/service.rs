//! The running service answers what the document says: exactly these properties, codes and headers.

use std::time::Duration;

use harness::{Answer, TestStack};
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};

use super::document::Document;
use crate::refusals::scene::Scene;

mod bounds;
mod refusals;

/// A stack whose demo namespace owns the domain of the documented origin.
async fn start() -> TestStack {
    let stack = TestStack::start().await;
    stack.add_domain(&stack.demo().namespace_id, ORIGIN).await;
    stack
}

const ORIGIN: &str = "https://play.example.com";

/// Sends a request with what a page adds, if it has no token.
async fn send(stack: &TestStack, method: Method, path: &str, token: Option<&str>, body: String) -> Answer {
    if token.is_some() {
        return stack.call(method, path, token, body).await;
    }
    let request = Request::builder().method(method).uri(format!("{}{path}", stack.demo().base_url));
    stack.send(request.header("origin", ORIGIN).body(Full::new(body.into())).unwrap()).await
}

#[tokio::test]
async fn each_documented_request_gets_the_documented_answer_by_every_right() {
    let (stack, document) = (start().await, Document::read());
    let mut answers = 0;
    for operation in document.operations() {
        for example in operation.request_examples() {
            for right in operation.rights() {
                let scene = Scene::on(&stack).await;
                let token = right.map(|scheme| scene.token(scheme.trim_end_matches("Token")));
                let body = example.map(|example| scene.realized(example).to_string()).unwrap_or_default();
                let (path, body) = (scene.path(operation.path), scene.for_caller(token, body));
                let answer = send(&stack, operation.method.clone(), &path, token, body).await;
                let at = format!("{} as {right:?}: {}", operation.id, answer.body);
                assert_eq!(answer.status, 200, "{at}");
                assert_eq!(operation.differences(&answer), [""; 0], "{at}");
                answers += 1;
            }
        }
    }
    let players = (4 + 2 + 2) * 3 + 3 + 4 + 3 + 3 + 1 + 1;
    let lobby_servers = 2 + 2 + 2 * 2 * 3 + 2 + 2 + 2 * 2;
    let game_servers = 2 * 2 + 2 + 3 + 2 * 2;
    let cloud = 1 + 2 + 1 + 1 + 1 + 2 + 1 + 1 + 1 + 1 + 1 + 11;
    assert_eq!(answers, players + lobby_servers + game_servers + cloud, "requests times rights");
}

#[tokio::test]
async fn a_port_range_and_the_origin_in_the_query_are_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let find = document.operation("findLobby");
    let body = json!({ "game_modes": ["duel"], "regions": ["nyc"] }).to_string();
    let path = format!("{}?origin=https%3A%2F%2Fplay.example.com", find.path);
    let answer = stack.call(Method::POST, &path, None, body).await.expect_ok();
    assert!(answer.body["ports"]["default"]["port_range"].is_object(), "{}", answer.body);
    assert_eq!(find.differences(&answer), [""; 0]);
}

#[tokio::test]
async fn what_players_see_of_lobbies_is_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let public = Some(stack.demo().tokens.public.as_str());
    let seat = stack.find(json!({ "game_modes": ["duel"] })).await.expect_ok();
    let (game_id, namespace_id) = (&stack.demo().game_id, &stack.demo().namespace_id);
    let token = stack.lobby_token(game_id, namespace_id, &seat.lobby_id());
    for state in [None, Some(json!(null)), Some(json!([1, "two", { "three": 4.5 }]))] {
        if let Some(state) = &state {
            let path = document.operation("setLobbyState").path;
            stack.call(Method::PUT, path, Some(&token), state.to_string()).await.expect_ok();
        }
        // Lists are kept for five seconds.
        stack.clock.advance(Duration::from_secs(5));
        for (id, query) in [
            ("listLobbies", ""),
            ("listLobbies", "?include_state=true"),
            ("listLobbies", "?include_state=no"),
            ("getLobbyState", ""),
            ("getPlayerStatistics", ""),
        ] {
            let operation = document.operation(id);
            let path = format!("{}{query}", operation.path.replace("{lobby_id}", &seat.lobby_id()));
            let answer = stack.call(operation.method.clone(), &path, public, "").await.expect_ok();
            assert_eq!(operation.differences(&answer), [""; 0], "{id}{query}: {}", answer.body);
            if id == "listLobbies" {
                let listed = &answer.body["lobbies"][0];
                assert_eq!(listed["lobby_id"], seat.lobby_id());
                let shown = listed.as_object().unwrap().get("state");
                let expected = state.clone().unwrap_or(Value::Null);
                assert_eq!(shown, (query == "?include_state=true").then_some(&expected), "{query}");
            }
        }
    }
}

#[tokio::test]
async fn responses_to_game_servers_are_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let arena = json!({ "regions": ["fra"], "max_players": 1, "taggable": true,
                        "actions": { "create": { "enabled": true } } });
    let game = stack.make_game("told", json!({ "arena": arena }), 1_000, 0).await;
    let port = json!({ "hostname": "one.example", "port": 80, "protocol": "tcp" });
    let body = json!({ "server_id": "one", "region_id": "fra", "capacity": 200, "lease_seconds": 60,
                       "ports": { "game": port } });
    let registered = game.serve(&stack, "register", body).await.expect_ok();
    assert_eq!(document.operation("registerServer").differences(&registered), [""; 0], "{}", registered.body);
    for n in 0..101 {
        let body = json!({ "game_mode": "arena", "tags": { "n": n.to_string() }, "lobby_config": [n, null] });
        game.play(&stack, "lobbies/create", body).await.expect_ok();
    }
    let heartbeat = document.operation("heartbeatServer");
    let first = game.heartbeat(&stack, "one").await.expect_ok();
    let cursor = first.body["cursor"].clone();
    assert!(cursor.is_string(), "there are more lobbies than one response lists");
    let second =
        game.serve(&stack, "heartbeat", json!({ "server_id": "one", "cursor": cursor })).await.expect_ok();
    let mut count = 0;
    for page in [first, second] {
        assert_eq!(heartbeat.differences(&page), [""; 0], "{}", page.body);
        let lobbies = page.body["lobbies"].as_array().unwrap();
        let own = |lobby: &&Value| lobby["lobby_config"].is_array() && lobby["tags"]["n"].is_string();
        count += lobbies.iter().filter(own).count();
    }
    assert_eq!(count, 101);
}

#[tokio::test]
async fn a_time_has_its_milliseconds_even_when_they_are_round() {
    let (stack, document) = (start().await, Document::read());
    let scene = Scene::on(&stack).await;
    let lease = json!({ "region_id": "nyc", "server_id": scene.server_id, "lease_seconds": 60,
                        "ports": { "game": { "hostname": "a", "port": 1, "protocol": "udp" } } });
    let (register, heartbeat) = (document.operation("registerServer"), document.operation("heartbeatServer"));
    let server = Some(scene.tokens.server.as_str());
    for millis in [0, 1, 10, 100, 120, 999] {
        let into_second = stack.clock.now().0 % 1_000;
        stack.clock.advance(Duration::from_millis(1_000 - into_second + millis));
        for (operation, body) in [
            (&register, lease.to_string()),
            (&heartbeat, json!({ "server_id": scene.server_id }).to_string()),
        ] {
            let answer = stack.call(Method::POST, operation.path, server, body).await.expect_ok();
            let expires_at = answer.body["lease_expires_at"].as_str().unwrap();
            assert!(expires_at.ends_with(&format!(".{millis:03}Z")), "{}: {expires_at}", operation.id);
            assert_eq!(operation.differences(&answer), [""; 0], "{}: {expires_at}", operation.id);
        }
    }
}

#[tokio::test]
async fn the_gateways_own_answers_are_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let answer = stack.call(Method::GET, "/no/such/route", None, "").await;
    assert_eq!(answer.status, 404);
    let schema = &document.root["components"]["schemas"]["GatewayError"];
    assert_eq!(document.violations(schema, &answer.body), [""; 0], "{}", answer.body);
    assert_eq!(HeaderMap::get(&answer.headers, "x-request-id"), None);
}

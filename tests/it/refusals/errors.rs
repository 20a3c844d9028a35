//! What every refusal looks like, and what it keeps to itself.

use std::{collections::BTreeSet, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use find_lobby::FindLobby;
use lambda_http::Body;
use muster_tests::{Answer, TestStack};
use serde_json::{Value, json};
use shared::{
    ambient::Ambient,
    http::answer,
    matchmaking::Matchmaker,
    settings_cache::{SETTINGS_AGE_MAX, SettingsCache},
    store::{Store, emulator_client},
    tokens::{CloudToken, CredentialKind, TokenKeys},
};

use super::{OPERATIONS, Operation, Right, write_to_namespace};

/// The identifier of an answer, which both headers carry.
fn request_id(answer: &Answer) -> String {
    let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    let id = header("x-request-id");
    assert!(!id.is_empty());
    assert_eq!(header("rvt-ray-id"), id);
    id
}

/// Checks an error's body and headers, and tells its message.
fn check_error(answer: &Answer) -> String {
    let fields: BTreeSet<_> = answer.body.as_object().unwrap().keys().map(String::as_str).collect();
    let known = BTreeSet::from(["code", "message", "ray_id", "metadata", "documentation"]);
    assert!(fields.is_subset(&known), "{}", answer.body);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.body["ray_id"], request_id(answer));
    let code = answer.body["code"].as_str().unwrap();
    assert!(code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{code}");
    let message = answer.body["message"].as_str().unwrap();
    assert!(!message.is_empty());
    message.to_owned()
}

/// Words of the inside, which no answer may have.
fn assert_tells_no_cause(answer: &Answer) {
    let text = answer.body.to_string().to_lowercase();
    for word in [
        "dynamo",
        "table",
        "item",
        "attribute",
        "condition",
        "127.0.0.1",
        "connect",
        "timeout",
        "serde",
        "pk",
        "missing version",
        "panicked",
        ".rs",
    ] {
        assert!(!text.contains(word), "`{word}` in {text}");
    }
}

#[tokio::test]
async fn every_answer_has_its_own_id_in_both_headers() {
    let stack = TestStack::start().await;
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        for operation in &OPERATIONS {
            let answer = operation.call(&stack, operation.token(stack.demo())).await;
            assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
            assert!(ids.insert(request_id(&answer)), "an identifier came twice");
        }
    }
}

#[tokio::test]
async fn an_error_says_code_message_and_ray_id() {
    let stack = TestStack::start().await;
    let mut ids = BTreeSet::new();
    for operation in Operation::guarded() {
        for (token, body) in [
            (None, operation.valid_body(stack.demo())),
            (Some("x"), operation.valid_body(stack.demo())),
            (Some(stack.demo().tokens.server.as_str()), operation.valid_body(stack.demo())),
            (operation.token(stack.demo()), "{".to_owned()),
            (operation.token(stack.demo()), " ".repeat(64 * 1024 + 1)),
        ] {
            let answer = operation.call_with_body(&stack, token, body).await;
            assert!(answer.status.is_client_error(), "{operation:?}: {}", answer.body);
            let _message = check_error(&answer);
            assert_tells_no_cause(&answer);
            assert!(!answer.headers.contains_key("retry-after"));
            assert!(ids.insert(request_id(&answer)), "an identifier came twice");
        }
    }
}

#[tokio::test]
async fn a_client_cannot_choose_its_ray_id() {
    let stack = TestStack::start().await;
    for operation in &OPERATIONS {
        let headers: [(&str, &[u8]); 3] =
            [("x-request-id", b"chosen"), ("rvt-ray-id", b"chosen"), ("x-amzn-trace-id", b"chosen")];
        let answer = operation.call_with_headers(&stack, &headers).await;
        assert_ne!(request_id(&answer), "chosen", "{operation:?}");
    }
}

#[tokio::test]
async fn refusals_of_rules_say_which_value_it_was() {
    let stack = TestStack::start().await;
    for (body, code, metadata) in [
        (
            json!({ "game_modes": ["chess"] }),
            "MATCHMAKER_GAME_MODE_NOT_FOUND",
            json!({ "game_mode": "chess" }),
        ),
        (
            json!({ "game_modes": ["arena"], "regions": ["fra", "mars"] }),
            "MATCHMAKER_REGION_NOT_FOUND",
            json!({ "region": "mars" }),
        ),
        (
            json!({ "game_modes": ["arena", "duel"], "tags": { "map": "dust" } }),
            "MATCHMAKER_TAGS_DISABLED",
            json!({ "game_mode": "duel" }),
        ),
        (
            json!({ "game_modes": ["arena", "duel"], "max_players": 2 }),
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED",
            json!({ "game_mode": "duel" }),
        ),
        (
            json!({ "game_modes": ["arena"], "max_players": 11 }),
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
            json!({ "max": 10 }),
        ),
    ] {
        let answer = stack.find(body).await;
        assert_eq!(answer.refusal(), (400, code));
        assert_eq!(answer.body["metadata"], metadata, "{code}");
        let _message = check_error(&answer);
    }
}

#[tokio::test]
async fn a_shown_token_or_password_is_never_repeated() {
    let stack = TestStack::start().await;
    let secret = "correct-horse-battery";
    for operation in Operation::guarded() {
        let answer = operation.call(&stack, Some(secret)).await;
        assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
    }
    let token = Some(stack.demo().tokens.cloud.as_str());
    for password in [json!(secret), json!([secret]), json!({ secret: secret })] {
        let body = json!({ "user": "a", "password": password }).to_string();
        let path = stack.namespace_path("auth-user");
        let answer = stack.call(http::Method::POST, &path, token, body).await;
        assert!(answer.status.is_client_error(), "{}", answer.body);
        assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
    }
}

#[tokio::test]
async fn without_a_place_on_a_server_the_client_learns_when_to_come_again() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("crowded", modes, 9, 1).await;
    let find = || game.find(&stack, json!({ "game_modes": ["solo"] }));
    let _the_only_place = find().await.expect_ok();
    let refused = find().await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let _message = check_error(&refused);
    let secs: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&secs), "{secs}");
}

#[tokio::test]
async fn a_defect_is_a_500_that_keeps_its_cause() {
    let stack = TestStack::start().await;
    let (game_id, namespace_id) = (&stack.demo().game_id, &stack.demo().namespace_id);
    let missing = AttributeValue::S("no-such-version".to_owned());
    write_to_namespace(&stack, game_id, namespace_id, "version_id", missing).await;
    for operation in Operation::with(Right::Player) {
        let answer = operation.call(&stack, operation.token(stack.demo())).await;
        assert_eq!(answer.refusal(), (500, "ERROR"), "{operation:?}");
        let _message = check_error(&answer);
        assert_tells_no_cause(&answer);
        assert!(!answer.body.to_string().contains("no-such-version"));
    }
}

/// lobbies.find of a function whose database cannot be reached.
async fn find_without_database(keys: &Arc<TokenKeys>, token: Option<&str>) -> (u16, Value, Option<String>) {
    let ambient = Ambient::system();
    // Nothing listens on the discard port.
    let store = Store::new(emulator_client("http://127.0.0.1:9"), muster_local::stack::table_names());
    let settings = Arc::new(SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
    let matchmaker = Matchmaker::new(store, Arc::clone(&settings), ambient.clone());
    let operation = FindLobby::new(settings, matchmaker, Arc::clone(keys), ambient, None);
    let mut request = http::Request::post("/matchmaker/lobbies/find");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::from(r#"{"game_modes": ["arena"]}"#)).unwrap();
    let response = answer(&operation, request).await;
    let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let body = serde_json::from_slice(response.body()).unwrap();
    (response.status().as_u16(), body, retry_after)
}

#[tokio::test]
async fn without_its_database_a_find_invites_another_try_and_keeps_the_cause() {
    let keys = Arc::new(TokenKeys::new(&[7; 32], None).unwrap());
    let ambient = Ambient::system();
    let (game_id, namespace_id) = ("g".parse().unwrap(), "n".parse().unwrap());
    let public = keys.issue_credential(CredentialKind::Public, &game_id, &namespace_id, &ambient);
    let (status, body, retry_after) = find_without_database(&keys, Some(&public)).await;
    assert_eq!((status, &body["code"]), (503, &json!("API_UNAVAILABLE")));
    assert!(retry_after.unwrap().parse::<u64>().unwrap() >= 1);
    let answer =
        Answer { status: http::StatusCode::SERVICE_UNAVAILABLE, headers: http::HeaderMap::new(), body };
    assert_tells_no_cause(&answer);
}

#[tokio::test]
async fn whoever_shows_no_usable_token_costs_no_database_call() {
    let keys = Arc::new(TokenKeys::new(&[7; 32], None).unwrap());
    let strange = TokenKeys::new(&[8; 32], None).unwrap();
    let ambient = Ambient::system();
    let (game_id, namespace_id) = ("g".parse().unwrap(), "n".parse().unwrap());
    let credential = |keys: &TokenKeys, kind| keys.issue_credential(kind, &game_id, &namespace_id, &ambient);
    let server = credential(&keys, CredentialKind::Server);
    let forged = credential(&strange, CredentialKind::Public);
    let cloud = CloudToken::random(&ambient);
    for (token, status, code) in [
        (None, 401, "API_UNAUTHORIZED"),
        (Some("x"), 401, "TOKEN_INVALID"),
        (Some(forged.as_str()), 401, "TOKEN_INVALID"),
        (Some(server.as_str()), 403, "CLAIMS_MISSING_ENTITLEMENT"),
        (Some(cloud.reveal()), 403, "CLAIMS_MISSING_ENTITLEMENT"),
    ] {
        let (actual, body, _) = find_without_database(&keys, token).await;
        assert_eq!((actual, &body["code"]), (status, &json!(code)));
    }
}

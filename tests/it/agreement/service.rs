//! The running service answers what the document says: exactly these properties, codes and headers.

use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use muster_tests::{Answer, TestStack};
use serde_json::{Value, json};
use shared::{provision::issue_cloud_token, store::catalog::DomainOwner};

use super::document::{Document, Operation};

/// A stack whose demo namespace owns the domain of the documented origin.
async fn start() -> TestStack {
    let stack = TestStack::start().await;
    let (game_id, namespace_id) = (stack.demo().game_id.clone(), stack.demo().namespace_id.clone());
    let owner = DomainOwner { game_id, namespace_id };
    let host = shared::rules::origin::OriginHost::parse(ORIGIN).unwrap();
    let _new = stack.store().add_domain(&host, &owner).await.unwrap();
    stack
}

const ORIGIN: &str = "https://play.example.com";

/// The operation's path on the demo's namespace.
fn path(stack: &TestStack, operation: &Operation<'_>) -> String {
    let demo = stack.demo();
    let path = operation.path.replace("{game_id}", demo.game_id.as_str());
    path.replace("{namespace_id}", demo.namespace_id.as_str())
}

/// A token of the demo for a security scheme of the document.
fn token<'a>(stack: &'a TestStack, scheme: &str) -> &'a str {
    let tokens = &stack.demo().tokens;
    match scheme {
        "publicToken" => &tokens.public,
        "developmentToken" => &tokens.development,
        "cloudToken" => &tokens.cloud,
        other => panic!("the test does not know the scheme {other}"),
    }
}

/// Sends a request with what a page adds, if it has no token.
async fn send(
    stack: &TestStack,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Answer {
    let body = body.map(Value::to_string).unwrap_or_default();
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
            let mut example = example.cloned();
            if let Some(version_id) = example.as_mut().and_then(|example| example.get_mut("version_id")) {
                *version_id = json!(stack.demo().version_ids[0]);
            }
            for right in operation.rights() {
                let token = right.map(|scheme| token(&stack, scheme));
                let path = path(&stack, &operation);
                let answer = send(&stack, operation.method.clone(), &path, token, example.as_ref()).await;
                let at = format!("{} as {right:?}: {}", operation.id, answer.body);
                assert_eq!(answer.status, 200, "{at}");
                assert_eq!(operation.differences(&answer), [""; 0], "{at}");
                answers += 1;
            }
        }
    }
    assert_eq!(answers, 2 * 3 + 1 + 2 + 1 + 1 + 1, "requests times rights");
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
async fn each_operation_that_needs_a_right_refuses_without_it_as_documented() {
    let (stack, document) = (start().await, Document::read());
    for operation in document.operations() {
        let rights = operation.rights();
        if rights == [None] {
            continue;
        }
        let (path, body) = (path(&stack, &operation), operation.request_examples()[0].unwrap().to_string());
        // The demo's server token is a right to none of these.
        let others = [
            (None, (401, "API_UNAUTHORIZED")),
            (Some("nonsense"), (401, "TOKEN_INVALID")),
            (Some(stack.demo().tokens.server.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ];
        for (token, refusal) in others {
            let answer = stack.call(operation.method.clone(), &path, token, body.clone()).await;
            assert_eq!(answer.refusal(), refusal, "{}: {}", operation.id, answer.body);
            assert_eq!(operation.differences(&answer), [""; 0], "{}: {}", operation.id, answer.body);
        }
    }
}

#[tokio::test]
async fn refusals_of_find_are_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let find = document.operation("findLobby");
    let nine_tags: Value =
        (0..9).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    for (body, code, metadata) in [
        (json!([]), "API_BAD_BODY", None),
        (json!({ "game_modes": [] }), "MATCHMAKER_NO_GAME_MODE_PROVIDED", None),
        (json!({ "game_modes": ["x"] }), "MATCHMAKER_GAME_MODE_NOT_FOUND", Some(json!({ "game_mode": "x" }))),
        (json!({ "game_modes": ["arena"], "tags": nine_tags }), "MATCHMAKER_TOO_MANY_TAGS", None),
        (
            json!({ "game_modes": ["duel"], "tags": { "map": "x" } }),
            "MATCHMAKER_TAGS_DISABLED",
            Some(json!({ "game_mode": "duel" })),
        ),
        (
            json!({ "game_modes": ["arena"], "max_players": 11 }),
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
            Some(json!({ "max": 10 })),
        ),
        (
            json!({ "game_modes": ["arena"], "regions": ["mars"] }),
            "MATCHMAKER_REGION_NOT_FOUND",
            Some(json!({ "region": "mars" })),
        ),
        (
            json!({ "game_modes": ["solo"], "prevent_auto_create_lobby": true }),
            "MATCHMAKER_NO_AVAILABLE_LOBBIES",
            None,
        ),
    ] {
        let answer = stack.find(body).await;
        assert_eq!(answer.refusal(), (400, code), "{}", answer.body);
        assert_eq!(answer.body.get("metadata"), metadata.as_ref(), "{}", answer.body);
        assert_eq!(find.differences(&answer), [""; 0], "{}", answer.body);
    }

    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("one-place", modes, 9, 1).await;
    let body = json!({ "game_modes": ["solo"] });
    let _only_place = game.find(&stack, body.clone()).await.expect_ok();
    let answer = game.find(&stack, body).await;
    assert_eq!(answer.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "{}", answer.body);
    assert_eq!(find.differences(&answer), [""; 0], "{}", answer.body);
}

#[tokio::test]
async fn refusals_of_cloud_operations_are_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let demo = stack.demo();
    let other = stack.make_game("other", json!({ "solo": { "regions": ["fra"] } }), 9, 1).await;
    let other = issue_cloud_token(stack.store(), &stack.ambient(), other.game_id()).await.unwrap();
    let own = demo.tokens.cloud.as_str();
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(64 * 1024));
    for operation in document.operations() {
        if operation.rights() != [Some("cloudToken")] {
            continue;
        }
        let here = path(&stack, &operation);
        let elsewhere = here.replace(demo.namespace_id.as_str(), "no-such-namespace");
        let nowhere = here.replace(demo.namespace_id.as_str(), &"x".repeat(65));
        let good = operation.request_examples()[0].unwrap().to_string();
        for (path, token, body, refusal) in [
            (&here, own, "{", (400, "API_BAD_BODY")),
            (&here, own, "{}", (400, "API_BAD_BODY")),
            (&here, other.reveal(), &good, (403, "API_FORBIDDEN")),
            (&elsewhere, own, &good, (404, "CLOUD_NAMESPACE_NOT_FOUND")),
            (&nowhere, own, &good, (404, "API_NOT_FOUND")),
            (&here, own, &large, (413, "API_BODY_TOO_LARGE")),
        ] {
            let answer = stack.call(operation.method.clone(), path, Some(token), body.to_owned()).await;
            assert_eq!(answer.refusal(), refusal, "{}: {}", operation.id, answer.body);
            assert_eq!(operation.differences(&answer), [""; 0], "{}: {}", operation.id, answer.body);
        }
    }

    let password = "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";
    for (id, body, refusal) in [
        ("updateCdnAuthUser", json!({ "user": "a:b", "password": password }), (400, "CDN_INVALID_AUTH_USER")),
        (
            "updateCdnAuthUser",
            json!({ "user": "a", "password": "a" }),
            (400, "CDN_INVALID_AUTH_USER_PASSWORD"),
        ),
        (
            "updateNamespaceVersion",
            json!({ "version_id": "no-such-version" }),
            (404, "CLOUD_VERSION_NOT_FOUND"),
        ),
    ] {
        let operation = document.operation(id);
        let path = path(&stack, &operation);
        let answer = stack.call(operation.method.clone(), &path, Some(own), body.to_string()).await;
        assert_eq!(answer.refusal(), refusal, "{}", answer.body);
        assert_eq!(operation.differences(&answer), [""; 0], "{}", answer.body);
    }
}

#[tokio::test]
async fn what_the_document_calls_too_large_or_malformed_the_service_refuses() {
    let (stack, document) = (start().await, Document::read());
    // Bodies beyond each bound of the schemas; what is wrong with the form alone is refused as such.
    for (id, body) in [
        ("findLobby", json!({ "game_modes": "arena" })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 0 })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 1.5 })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 257 })),
        ("findLobby", json!({ "game_modes": ["arena"], "regions": [1] })),
        ("findLobby", json!({ "game_modes": ["arena"], "tags": { "k": "v".repeat(513) } })),
        ("findLobby", json!({ "game_modes": ["arena"], "tags": { "k".repeat(129): "v" } })),
        ("findLobby", json!({ "game_modes": ["arena"], "captcha": { "turnstile": {} } })),
        ("findLobby", json!({ "game_modes": ["arena"], "verification_data": [] })),
        ("findLobby", json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": "yes" })),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": 4_294_967_296_u64, "max_players": 1 })),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": 1, "max_players": -1 })),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": null, "max_players": 1 })),
        ("setCdnAuthType", json!({ "auth_type": "Basic" })),
        ("updateCdnAuthUser", json!({ "user": "", "password": format!("$2b$04${}", ".".repeat(53)) })),
        (
            "updateCdnAuthUser",
            json!({ "user": "x".repeat(129), "password": format!("$2b$04${}", ".".repeat(53)) }),
        ),
        (
            "updateCdnAuthUser",
            json!({ "user": "a\u{85}b", "password": format!("$2b$04${}", ".".repeat(53)) }),
        ),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$03${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$32${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2x$04${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$04${}b", ".".repeat(52)) })),
        ("updateNamespaceVersion", json!({ "version_id": 1 })),
    ] {
        let operation = document.operation(id);
        let schema = operation.request_schema().unwrap();
        assert_ne!(document.violations(schema, &body), [""; 0], "{id} allows {body}");
        let token = token(&stack, operation.rights()[0].unwrap());
        let path = path(&stack, &operation);
        let answer = stack.call(operation.method.clone(), &path, Some(token), body.to_string()).await;
        assert_eq!(answer.status, 400, "{id} {body}: {}", answer.body);
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

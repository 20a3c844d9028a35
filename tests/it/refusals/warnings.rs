//! What a request may not do as its sender expects is named in a header, on every operation.

use harness::{Answer, TestStack, instance::event_from};
use http::Method;
use lambda_http::Body;
use register_server::RegisterServer;
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    function::{
        instance::Instance,
        operation::{Operation as _, WARNING_HEADER, answer},
    },
};

use super::{
    operation::{OPERATIONS, Operation, send},
    scene::{Scene, registration},
};

/// A name that no operation knows, and none resembles.
const STRANGE: &str = "qwertz";

/// The warnings of an answer.
fn warnings(answer: &Answer) -> Option<&str> {
    answer.headers.get(WARNING_HEADER).map(|line| line.to_str().unwrap())
}

fn unknown_field(name: &str, similar: Option<&str>) -> String {
    let similar = similar.map(|similar| format!(" (did you mean \"{similar}\"?)")).unwrap_or_default();
    format!("unknown field \"{name}\"{similar}")
}

/// A body with one field more.
fn with(body: &str, field: &str) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body[field] = json!({ "any": ["thing"] });
    body.to_string()
}

#[tokio::test]
async fn a_request_without_anything_unknown_has_no_warning() {
    let stack = TestStack::start().await;
    for operation in OPERATIONS.iter() {
        let answer = operation.succeed(&Scene::on(&stack).await).await;
        assert_eq!(warnings(&answer), None, "{operation}");
    }
}

#[tokio::test]
async fn every_operation_names_the_unknown_field_and_parameter() {
    let stack = TestStack::start().await;
    for operation in OPERATIONS.iter() {
        let scene = Scene::on(&stack).await;
        let valid = operation.valid_body(&scene);
        let (body, of_body) = if operation.reads_object() {
            (with(&valid, STRANGE), Some(unknown_field(STRANGE, None)))
        } else if operation.reads_any_json() {
            // The sender's own.
            (with(&valid, STRANGE), None)
        } else {
            let ignored = "the body was ignored: this operation takes none".to_owned();
            (json!({ STRANGE: 1 }).to_string(), Some(ignored))
        };
        let path = format!("{}?{STRANGE}=1&origin=https://play.example", scene.path(operation.path));
        let answer =
            stack.call(operation.method.clone(), &path, operation.token(&scene), body).await.expect_ok();
        let of_query = format!("unknown query parameter \"{STRANGE}\"");
        let expected: Vec<_> = std::iter::once(of_query).chain(of_body).collect();
        assert_eq!(warnings(&answer), Some(&*expected.join("; ")), "{operation}");
    }
}

#[tokio::test]
async fn known_parameters_and_an_empty_body_have_no_warning() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for path in [
        "/matchmaker/lobbies/list?include_state=true&origin=https://play.example",
        "/cloud/games/{game_id}/namespaces/{namespace_id}/version-history?limit=1&anchor=",
    ] {
        let operation = Operation::at(path.split_once('?').unwrap().0);
        for body in ["", "{}", " {} \n"] {
            let answer =
                stack.call(operation.method.clone(), &scene.path(path), operation.token(&scene), body).await;
            assert_eq!(warnings(&answer.expect_ok()), None, "{path} {body}");
        }
    }
    let near = stack
        .call(Method::GET, "/matchmaker/lobbies/list?includeState=true", Some(&scene.tokens.public), "")
        .await;
    let expected = "unknown query parameter \"includeState\" (did you mean \"include_state\"?)";
    assert_eq!(warnings(&near.expect_ok()), Some(expected));
}

#[tokio::test]
async fn pages_may_read_the_warnings() {
    let stack = TestStack::start().await;
    let bearer = format!("Bearer {}", stack.demo().tokens.public);
    let headers: [(&str, &[u8]); 2] =
        [("authorization", bearer.as_bytes()), ("origin", b"https://play.example")];
    let answer = send(&stack, &Method::GET, "/matchmaker/regions?x=1", &headers, "").await.expect_ok();
    let exposed = answer.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.split(',').any(|name| name == WARNING_HEADER), "{exposed}");
    assert!(warnings(&answer).is_some());
}

#[tokio::test]
async fn a_refusal_names_unknown_fields_too() {
    let stack = TestStack::start().await;
    let refused = stack.find(json!({ "game_mode": ["duel"] })).await;
    assert_eq!(refused.refusal(), (400, "API_BAD_BODY"));
    assert_eq!(warnings(&refused), Some(&*unknown_field("game_mode", Some("game_modes"))));
    let refused = stack.find(json!({ "game_modes": ["chess"], "region": "fra" })).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
    assert_eq!(warnings(&refused), Some(&*unknown_field("region", Some("regions"))));
    let refused = stack.find_with("none", json!({ "game_modes": ["duel"], "region": "fra" })).await;
    assert_eq!(refused.refusal(), (401, "TOKEN_INVALID"));
    assert_eq!(
        warnings(&refused),
        Some(&*unknown_field("region", Some("regions"))),
        "find reads its body first"
    );
}

#[tokio::test]
async fn nested_fields_are_named_by_their_path_and_a_senders_own_are_not() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let captcha = json!({ "hcapcha": { "client_response": "x" } });
    let found = stack.find(json!({ "game_modes": ["arena"], "captcha": captcha })).await.expect_ok();
    assert_eq!(warnings(&found), Some(&*unknown_field("captcha.hcapcha", Some("hcaptcha"))));
    let captcha = json!({ "hcaptcha": { "client_response": "x", "clientResponse": "x" } });
    let found = stack.find(json!({ "game_modes": ["arena"], "captcha": captcha })).await.expect_ok();
    let path = "captcha.hcaptcha.clientResponse";
    assert_eq!(warnings(&found), Some(&*unknown_field(path, Some("client_response"))));

    let mut registration = registration("nested");
    registration["ports"]["default"]["host"] = json!("x");
    registration["leaseSeconds"] = json!(5);
    let body = registration.to_string();
    let path = "/matchmaker/servers/register";
    let registered = stack.call(Method::POST, path, Some(&scene.tokens.server), body).await.expect_ok();
    let named = warnings(&registered).unwrap();
    assert!(named.contains(&unknown_field("leaseSeconds", Some("lease_seconds"))), "{named}");
    assert!(named.contains("unknown field \"ports.default.host\""), "{named}");

    let own = json!({ STRANGE: { "region": 1 } });
    let free = json!({ "game_modes": ["arena"], "tags": { STRANGE: "x" }, "verification_data": own });
    assert_eq!(warnings(&stack.find(free).await), None);
    let free = json!({ "game_mode": "arena", "lobby_config": own, "verification_data": null });
    let path = "/matchmaker/lobbies/create";
    let created =
        stack.call(Method::POST, path, Some(&scene.tokens.public), free.to_string()).await.expect_ok();
    assert_eq!(warnings(&created), None);
    let near = json!({ "game_mode": "arena", "lobbyConfig": own });
    let created =
        stack.call(Method::POST, path, Some(&scene.tokens.public), near.to_string()).await.expect_ok();
    assert_eq!(warnings(&created), Some(&*unknown_field("lobbyConfig", Some("lobby_config"))));
}

#[tokio::test]
async fn no_field_name_adds_a_header_or_an_endless_one() {
    let stack = TestStack::start().await;
    let hostile = "x\r\nset-cookie: a=b\r\n\r\n\u{e4}\u{0}\"";
    let found = stack.find(json!({ "game_modes": ["arena"], hostile: 1 })).await.expect_ok();
    assert_eq!(found.headers.get("set-cookie"), None);
    let expected = r#"unknown field "x\r\nset-cookie: a=b\r\n\r\n\u{e4}\u{0}\"""#;
    assert_eq!(warnings(&found), Some(expected));
    let many = (0..3_000).map(|n| (format!("{n}{}", "\u{1f600}".repeat(3)), json!(1)));
    let mut many: serde_json::Map<_, _> = many.collect();
    many.insert("game_modes".to_owned(), json!(["arena"]));
    let found = stack.find(many.into()).await.expect_ok();
    let line = warnings(&found).unwrap();
    assert!(line.ends_with("; and 2992 more") && line.len() < 1_500, "{line}");
}

#[tokio::test]
async fn every_answer_to_a_development_token_says_that_it_is_a_mock() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::taking("development") {
        let answer = operation.call(&scene, Some(&scene.tokens.development)).await.expect_ok();
        let mock = "the response to a development token is a mock: nothing was checked, matched or stored";
        assert_eq!(warnings(&answer), Some(mock), "{operation}");
    }
}

#[tokio::test]
async fn a_find_goes_on_with_the_modes_that_live() {
    let stack = TestStack::start().await;
    let found = stack.find(json!({ "game_modes": ["removed", "duel", "removed"] })).await.expect_ok();
    let left_out = "no game mode \"removed\" in the current version: only the others were searched";
    assert_eq!(warnings(&found), Some(left_out));
    let alone = stack.find(json!({ "game_modes": ["duel"] })).await.expect_ok();
    assert_eq!(alone.lobby_id(), found.lobby_id(), "it is a lobby of the living mode");
    let refused = stack.find(json!({ "game_modes": ["removed", "gone"] })).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
    assert_eq!((refused.body["metadata"]["game_mode"].as_str(), warnings(&refused)), (Some("removed"), None));
    let path = "/matchmaker/lobbies/create";
    let create = json!({ "game_mode": "removed" }).to_string();
    let refused = stack.call(Method::POST, path, Some(&stack.demo().tokens.public), create).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
}

#[tokio::test]
async fn a_server_that_registers_an_address_of_its_own_network_over_the_internet_gets_a_warning() {
    let stack = TestStack::start().await;
    let (keys, ambient): (_, Ambient) = (stack.stack.keys(), stack.ambient());
    let parts = Instance::over(stack.store().clone(), keys.clone(), ambient.clone());
    let register = RegisterServer::start(&parts).unwrap();
    let token = format!("Bearer {}", stack.demo().tokens.server);
    for (hostname, is_private) in [
        ("10.0.0.7", true),
        ("192.168.1.5", true),
        ("127.0.0.1", true),
        ("169.254.0.9", true),
        ("::1", true),
        ("fe80::1", true),
        ("localhost", true),
        ("game.local", true),
        ("8.8.8.8", false),
        ("2606:4700::1111", false),
        ("eu-1.example.com", false),
    ] {
        let mut body = registration("addressed");
        body["ports"]["default"]["hostname"] = json!(hostname);
        for (source, is_far) in [("8.8.4.4", true), ("127.0.0.1", false), ("192.168.1.9", false)] {
            let event = event_from(source.parse().unwrap(), &[("authorization", &token)], &body, &[]);
            let response: lambda_http::Response<Body> = answer(&register, event, &ambient).await;
            assert_eq!(response.status(), 200, "{hostname}: {:?}", response.body());
            let line = response.headers().get(WARNING_HEADER).map(|line| line.to_str().unwrap());
            assert_eq!(line.is_some(), is_private && is_far, "{hostname} from {source}: {line:?}");
            assert!(line.is_none_or(|line| line.contains(hostname) && line.contains("is no public address")));
        }
    }
}

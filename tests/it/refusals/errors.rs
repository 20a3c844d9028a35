//! What every refusal looks like, and what it keeps to itself.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{Answer, TestStack};
use lambda_http::{Body, RequestExt as _};
use muster_local::{functions::Functions, stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    models::token::{CloudToken, Credential, CredentialKind},
    outside::endpoints::Outside,
    store::client::{Store, emulator_client},
};

use super::{
    operation::{OPERATIONS, Operation},
    scene::{Scene, write_to_namespace},
};

/// The identifier of an answer, which both headers carry.
fn request_id(answer: &Answer) -> String {
    let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    let id = header("x-request-id");
    assert!(!id.is_empty());
    assert_eq!(header("rvt-ray-id"), id);
    id
}

/// Checks an error's body and headers, and returns its message.
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
    let documentation = answer.body["documentation"].as_str().unwrap();
    assert!(documentation.ends_with(&format!("/errors#{code}")), "{documentation}");
    message.to_owned()
}

/// Words of the inside, which no answer may have.
fn assert_no_cause(answer: &Answer) {
    let mut said = answer.body.clone();
    let _link_of_this_machine = said.as_object_mut().unwrap().remove("documentation");
    let text = said.to_string().to_lowercase();
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
        for operation in OPERATIONS.iter() {
            let answer = operation.succeed(&Scene::on(&stack).await).await;
            assert!(ids.insert(request_id(&answer)), "an identifier came twice");
        }
    }
}

#[tokio::test]
async fn an_error_says_code_message_and_ray_id() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut ids = BTreeSet::new();
    for operation in Operation::guarded() {
        let (right, valid) = (operation.token(&scene), operation.valid_body(&scene));
        let mut requests = vec![
            (None, valid.clone()),
            (Some("x"), valid.clone()),
            // No operation takes a player's.
            (Some(scene.player.as_str()), valid),
        ];
        if operation.request_schema().is_some() {
            requests.extend([(right, "{".to_owned()), (right, " ".repeat(64 * 1024 + 1))]);
        }
        for (token, body) in requests {
            let answer = operation.call_with_body(&scene, token, body).await;
            assert!(answer.status.is_client_error(), "{operation}: {}", answer.body);
            let _message = check_error(&answer);
            assert_no_cause(&answer);
            assert!(!answer.headers.contains_key("retry-after"));
            assert!(ids.insert(request_id(&answer)), "an identifier came twice");
        }
    }
}

#[tokio::test]
async fn a_client_cannot_choose_its_ray_id() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in OPERATIONS.iter() {
        let headers: [(&str, &[u8]); 3] =
            [("x-request-id", b"chosen"), ("rvt-ray-id", b"chosen"), ("x-amzn-trace-id", b"chosen")];
        let answer = operation.call_with_headers(&scene, &headers).await;
        assert_ne!(request_id(&answer), "chosen", "{operation}");
    }
}

#[tokio::test]
async fn refusals_of_rules_say_which_value_it_was() {
    let stack = TestStack::start().await;
    for (body, code, metadata) in [
        (
            json!({ "game_modes": ["chess"] }),
            "MATCHMAKER_GAME_MODE_NOT_FOUND",
            json!({ "game_mode": "chess", "game_modes": ["arena", "duel", "solo"] }),
        ),
        (
            json!({ "game_modes": ["arena"], "regions": ["fra", "mars"] }),
            "MATCHMAKER_REGION_NOT_FOUND",
            json!({ "region": "mars", "regions": ["fra", "nyc"] }),
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
async fn refusals_of_rules_say_which_values_all_of_them_were() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let port = |protocol: &str| json!({ "port": 0, "protocol": protocol });
    for (path, body, code, expected) in [
        (
            "/servers/register",
            json!({ "region_id": "mars", "capacity": 0, "ports": { "a": port("tcp"), "b": port("https") } }),
            "MATCHMAKER_INVALID_SERVER",
            vec![
                "region_id/not-found",
                "capacity/too-low",
                "ports/a/hostname/invalid",
                "ports/a/mixed-tls",
                "ports/a/port/out-of-range",
                "ports/b/hostname/invalid",
                "ports/b/mixed-tls",
                "ports/b/port/out-of-range",
            ],
        ),
        (
            "/tokens/development",
            json!({ "hostname": "not a host", "ports": { "A": { "protocol": "tcp" } } }),
            "VALIDATION_ERROR",
            vec!["ports/A/label/invalid", "ports/A/hostname/invalid", "ports/A/port/missing"],
        ),
        (
            "/versions",
            json!({ "display_name": "", "config": { "game_modes": {
                "a": { "regions": ["mars"], "max_players": 0 }, "b": { "regions": [] } } } }),
            "VALIDATION_ERROR",
            vec![
                "display-name/too-short",
                "game_modes/a/regions/not-found",
                "game_modes/a/max_players/too-low",
                "game_modes/b/regions/too-few",
            ],
        ),
        (
            "/namespaces",
            json!({ "display_name": "\n", "version_id": scene.version_id, "name_id": "No" }),
            "VALIDATION_ERROR",
            vec!["display-name/too-short", "name-id/invalid"],
        ),
        (
            "/mm-config",
            json!({ "lobby_count_max": 0, "max_players": 0 }),
            "VALIDATION_ERROR",
            vec![
                "lobby-count/too-low",
                "max-players/too-low",
                "max-players/client/too-low",
                "max-players/vpn/too-low",
                "max-players/proxy/too-low",
                "max-players/tor/too-low",
                "max-players/hosting/too-low",
            ],
        ),
    ] {
        let answer = Operation::at(path).call_with(&scene, body.to_string()).await;
        assert_eq!(answer.refusal(), (400, code), "{path}: {}", answer.body);
        let errors = answer.body["metadata"]["errors"].as_array().unwrap().iter();
        let joined = |error: &Value| {
            let parts: Vec<_> =
                error["path"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
            parts.join("/")
        };
        assert_eq!(errors.map(joined).collect::<Vec<_>>(), expected, "{path}");
        let _message = check_error(&answer);
    }
}

#[tokio::test]
async fn a_shown_token_or_password_is_never_repeated() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let secret = "correct-horse-battery";
    for operation in Operation::guarded() {
        let answer = operation.call(&scene, Some(secret)).await;
        assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
    }
    for (path, name, fields) in [
        ("/auth-user", "password", json!({ "user": "a" })),
        ("/players/connected", "player_token", json!({})),
        ("/players/disconnected", "player_token", json!({})),
        ("/players/remove", "player_token", json!({})),
        ("/players/leave", "player_token", json!({})),
        ("/players/rejoin", "player_token", json!({})),
    ] {
        for value in [json!(secret), json!([secret]), json!({ secret: secret })] {
            let mut body = fields.clone();
            body[name] = value;
            let answer = Operation::at(path).call_with(&scene, body.to_string()).await;
            assert!(answer.status.is_client_error(), "{}", answer.body);
            assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
        }
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
    let scene = Scene::on(&stack).await;
    let missing = AttributeValue::S("no-such-version".to_owned());
    write_to_namespace(&stack, scene.game_id, scene.namespace_id, "version_id", missing).await;
    stack.clock.advance(Duration::from_secs(1));
    for kind in ["public", "server", "development"] {
        for operation in Operation::taking(kind) {
            let answer = operation.call(&scene, Some(scene.token(kind))).await;
            assert_eq!(answer.refusal(), (500, "ERROR"), "{operation} {kind}");
            let _message = check_error(&answer);
            assert_no_cause(&answer);
            assert!(!answer.body.to_string().contains("no-such-version"));
        }
    }
}

#[tokio::test]
async fn a_version_that_is_taken_breaks_nothing_when_it_is_deployed() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for regions in [json!(["fra"]), json!(["nyc", "fra"]), json!(["fra", "fra"])] {
        let config = json!({ "game_modes": { "arena": { "regions": regions } } });
        let body = json!({ "display_name": "2", "config": config }).to_string();
        let created = Operation::at("/versions").call_with(&scene, body).await;
        if created.refusal() == (400, "VALIDATION_ERROR") {
            continue;
        }
        let body = json!({ "version_id": created.expect_ok().body["version_id"] }).to_string();
        Operation::at("/version").call_with(&scene, body).await.expect_ok();
        let _seat = stack.find(json!({ "game_modes": ["arena"] })).await.expect_ok();
        for path in ["/lobbies/list", "/players/statistics", "/matchmaker/regions"] {
            let answer = Operation::at(path).call(&scene, Some(&scene.tokens.public)).await;
            assert_eq!(answer.status, 200, "{path}, {regions}: {}", answer.body);
        }
    }
}

/// The functions of the template when their database cannot be reached.
struct Unreachable {
    functions: Functions,
    template: Template,
}

impl Unreachable {
    fn new(keys: &Arc<TokenKeys>) -> Self {
        // Nothing listens on the discard port.
        let store = Store::new(emulator_client("http://127.0.0.1:9"), muster_local::stack::table_names());
        let template = Template::parse(TEMPLATE).unwrap();
        let functions = Functions::new(
            store,
            template.functions.clone(),
            Arc::clone(keys),
            Ambient::system(),
            Outside::default(),
        );
        Self { functions, template }
    }

    /// What an operation answers to a request that is valid on `scene` but for the token.
    async fn answer(&self, operation: &Operation, scene: &Scene<'_>, token: Option<&str>) -> Answer {
        let route = self.template.routes.iter().find(|route| route.key() == operation.to_string()).unwrap();
        let handler = self.functions.instance(&route.code_uri).unwrap();
        let path = scene.path(operation.path);
        let mut request = http::Request::builder().method(operation.method.clone()).uri(&path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let parameters = route.path.parameters_of(&path).unwrap().into_iter();
        let parameters: HashMap<_, _> =
            parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let request = request.body(Body::from(operation.valid_body(scene))).unwrap();
        let (parts, body) = handler(request.with_path_parameters(parameters)).await.into_parts();
        Answer::new(parts, body.as_ref())
    }
}

#[tokio::test]
async fn without_its_database_an_operation_invites_another_try_and_keeps_the_cause() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let unreachable = Unreachable::new(stack.stack.keys());
    for operation in OPERATIONS.iter() {
        let answer = unreachable.answer(operation, &scene, operation.token(&scene)).await;
        if operation.is_open() && operation.request_schema().is_none() {
            assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
            continue;
        }
        assert_eq!(answer.refusal(), (503, "API_UNAVAILABLE"), "{operation}");
        let retry_after: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(retry_after >= 1, "{operation}");
        assert_no_cause(&answer);
    }
}

#[tokio::test]
async fn a_request_without_a_usable_token_costs_no_database_call() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let unreachable = Unreachable::new(stack.stack.keys());
    let strange = TokenKeys::new(&[8; 32], None).unwrap();
    let credential = |keys: &TokenKeys, kind| {
        keys.issue_credential(kind, &Credential::fresh(scene.game_id, scene.namespace_id, &stack.ambient()))
    };
    let forged = credential(&strange, CredentialKind::Public);
    let never_issued = CloudToken::random(&stack.ambient());
    for operation in Operation::guarded() {
        let mut shown = vec![
            (None, (401, "API_UNAUTHORIZED")),
            (Some("x"), (401, "TOKEN_INVALID")),
            (Some(forged.as_str()), (401, "TOKEN_INVALID")),
            (Some(scene.player.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ];
        if !operation.takes("cloud") {
            shown.push((Some(never_issued.reveal()), (403, "CLAIMS_MISSING_ENTITLEMENT")));
        }
        for kind in ["public", "server", "lobby"].into_iter().filter(|kind| !operation.takes(kind)) {
            shown.push((Some(scene.token(kind)), (403, "CLAIMS_MISSING_ENTITLEMENT")));
        }
        for (token, refusal) in shown {
            let answer = unreachable.answer(operation, &scene, token).await;
            assert_eq!(answer.refusal(), refusal, "{operation}");
        }
    }
}

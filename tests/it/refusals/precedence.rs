//! Which of several refusals is answered.

use harness::{Answer, TestStack};
use serde_json::{Value, json};

use super::{
    operation::{OPERATIONS, Operation},
    scene::Scene,
};

const BROKEN_BODY: &str = "{";

fn oversized_body() -> String {
    format!("{{{}}}", " ".repeat(64 * 1024))
}

#[tokio::test]
async fn a_cloud_operation_looks_at_path_then_token_then_game_then_namespace_then_body() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let modes = json!({ "solo": { "regions": ["fra"] } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let (game_id, namespace_id) = (scene.game_id.as_str(), scene.namespace_id.as_str());
    let cloud = Some(scene.tokens.cloud.as_str());
    let public = Some(scene.tokens.public.as_str());
    let theirs = Some(other.created.cloud_token.reveal());
    let oversized = oversized_body();
    for operation in Operation::taking("cloud") {
        for body in ["", "{}", BROKEN_BODY, "[]", &oversized] {
            for (game_id, namespace_id, token, refusal) in [
                ("a.b", namespace_id, None, (404, "API_NOT_FOUND")),
                (game_id, "a.b", None, (404, "API_NOT_FOUND")),
                (game_id, "a.b", Some("x"), (404, "API_NOT_FOUND")),
                (game_id, "a.b", theirs, (404, "API_NOT_FOUND")),
                (game_id, namespace_id, None, (401, "API_UNAUTHORIZED")),
                (game_id, namespace_id, Some("x"), (401, "TOKEN_INVALID")),
                (game_id, namespace_id, public, (403, "CLAIMS_MISSING_ENTITLEMENT")),
                (game_id, "unknown", None, (401, "API_UNAUTHORIZED")),
                (game_id, "unknown", public, (403, "CLAIMS_MISSING_ENTITLEMENT")),
                (game_id, "unknown", theirs, (403, "API_FORBIDDEN")),
                ("unknown", "unknown", cloud, (403, "API_FORBIDDEN")),
                (game_id, "unknown", cloud, (404, "CLOUD_NAMESPACE_NOT_FOUND")),
            ] {
                let is_about_namespace = namespace_id == "a.b" || refusal.1 == "CLOUD_NAMESPACE_NOT_FOUND";
                if is_about_namespace && !operation.is_on_namespace() {
                    continue;
                }
                let path = operation.path_in(&scene, game_id, namespace_id);
                let answer = stack.call(operation.method.clone(), &path, token, body.to_owned()).await;
                assert_eq!(answer.refusal(), refusal, "{} {path}", operation.method);
            }
        }
        if operation.request_schema().is_some() {
            let oversized = operation.call_with(&scene, oversized_body()).await;
            assert_eq!(oversized.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation}");
        }
    }
}

#[tokio::test]
async fn what_gives_a_seat_looks_at_the_body_then_at_the_token() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let bad_body = (400, "API_BAD_BODY");
    let oversized = oversized_body();
    for operation in OPERATIONS.iter().filter(|operation| operation.reads_body_first()) {
        for token in [None, Some("x"), Some(scene.tokens.server.as_str()), Some(&scene.tokens.lobby)] {
            for (body, refusal) in [
                (oversized.as_str(), (413, "API_BODY_TOO_LARGE")),
                (BROKEN_BODY, bad_body),
                ("", bad_body),
                ("[]", bad_body),
                (r#"{"game_modes": "arena", "game_mode": 1, "lobby_id": 1}"#, bad_body),
            ] {
                let answer = operation.call_with_body(&scene, token, body.to_owned()).await;
                assert_eq!(answer.refusal(), refusal, "{operation} {body:.40}");
            }
        }
        let refused_by_rules =
            r#"{"game_modes": ["chess"], "regions": ["mars"], "game_mode": "chess", "lobby_id": "none"}"#;
        for (token, refusal) in [
            (None, (401, "API_UNAUTHORIZED")),
            (Some("x"), (401, "TOKEN_INVALID")),
            (Some(scene.tokens.server.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
            (Some(&scene.tokens.lobby), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ] {
            let answer = operation.call_with_body(&scene, token, refused_by_rules).await;
            assert_eq!(answer.refusal(), refusal, "{operation}");
        }
        // A developer's body need not fit, only be JSON.
        let development = Some(scene.tokens.development.as_str());
        for (body, status) in [(BROKEN_BODY, 400), (&oversized, 413), ("[]", 200), (refused_by_rules, 200)] {
            let answer = operation.call_with_body(&scene, development, body.to_owned()).await;
            assert_eq!(answer.status, status, "{operation} {body:.40}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn find_looks_at_the_body_then_at_the_modes_then_at_the_token() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let no_mode = (400, "MATCHMAKER_NO_GAME_MODE_PROVIDED");
    let bad_body = (400, "API_BAD_BODY");
    let find = Operation::at("/lobbies/find");
    for token in [None, Some("x"), Some(scene.tokens.server.as_str())] {
        for (body, refusal) in [
            (r#"{"game_modes": [], "max_players": -1}"#, bad_body),
            (r#"{"game_modes": []}"#, no_mode),
            (r#"{"game_modes": [], "regions": ["mars"], "max_players": 0}"#, no_mode),
        ] {
            let answer = find.call_with_body(&scene, token, body).await;
            assert_eq!(answer.refusal(), refusal, "{body}");
        }
    }
    for (token, refusal) in [
        (None, (401, "API_UNAUTHORIZED")),
        (Some("x"), (401, "TOKEN_INVALID")),
        (Some(scene.tokens.server.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
    ] {
        let unknown_mode = r#"{"game_modes": ["chess"], "regions": ["mars"], "max_players": 0}"#;
        let answer = find.call_with_body(&scene, token, unknown_mode).await;
        assert_eq!(answer.refusal(), refusal);
    }
}

#[tokio::test]
async fn of_lobby_and_game_servers_the_token_is_checked_then_the_body_then_the_lobby() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    // Nothing of it is left, so its refusals come last.
    Operation::at("/servers/end-lobby").succeed(&scene).await;
    Operation::at("/servers/deregister").succeed(&scene).await;
    let oversized = oversized_body();
    let of_servers = |operation: &&Operation| operation.takes("lobby") || operation.takes("server");
    let reading = Operation::reading().filter(of_servers);
    for operation in reading {
        for (token, refusal) in [
            (None, (401, "API_UNAUTHORIZED")),
            (Some("x"), (401, "TOKEN_INVALID")),
            (Some(scene.tokens.public.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
            (Some(&scene.player), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ] {
            for body in [BROKEN_BODY, "", "[]", &oversized] {
                let answer = operation.call_with_body(&scene, token, body.to_owned()).await;
                assert_eq!(answer.refusal(), refusal, "{operation} {body:.9}");
            }
        }
        let is_any_json = operation.reads_any_json();
        for kind in operation.kinds().filter(|kind| *kind != "development") {
            let token = Some(scene.token(kind));
            for body in [BROKEN_BODY, "[]", ""].into_iter().take(if is_any_json { 1 } else { 3 }) {
                let answer = operation.call_with_body(&scene, token, body).await;
                assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{operation} {kind} {body}");
            }
            let answer = operation.call_with_body(&scene, token, oversized.clone()).await;
            assert_eq!(answer.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation} {kind}");
        }
    }
}

#[tokio::test]
async fn for_the_state_of_a_lobby_path_then_token_then_namespace_are_checked() {
    let stack = TestStack::start().await;
    let (scene, there) = (Scene::on(&stack).await, Scene::in_other_namespace(&stack).await);
    let operation = Operation::at("/{lobby_id}/state");
    Operation::at("/servers/end-lobby").succeed(&scene).await;
    let ended = scene.lobby_id.as_str();
    for (lobby_id, token, refusal) in [
        ("a.b", None, (404, "API_NOT_FOUND")),
        ("a.b", Some("x"), (404, "API_NOT_FOUND")),
        (ended, None, (401, "API_UNAUTHORIZED")),
        (ended, Some("x"), (401, "TOKEN_INVALID")),
        (ended, Some(scene.tokens.server.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        (ended, Some(&there.tokens.lobby), (403, "API_FORBIDDEN")),
        ("unknown", Some(&there.tokens.lobby), (403, "API_FORBIDDEN")),
        (ended, Some(&there.tokens.public), (400, "MATCHMAKER_LOBBY_NOT_FOUND")),
        (ended, Some(&scene.tokens.public), (400, "MATCHMAKER_LOBBY_STOPPED")),
    ] {
        let path = operation.path.replace("{lobby_id}", lobby_id);
        let answer = stack.call(operation.method.clone(), &path, token, "").await;
        assert_eq!(answer.refusal(), refusal, "{path}");
    }
}

#[tokio::test]
async fn find_looks_at_modes_then_tags_then_max_players_then_regions() {
    let stack = TestStack::start().await;
    let nine_tags: serde_json::Map<_, _> = (0..9).map(|n| (n.to_string(), json!("x"))).collect();
    let long = |bytes: usize| "x".repeat(bytes);
    let mut body = json!({
        "game_modes": ["chess"],
        "tags": nine_tags,
        "max_players": 0,
        "regions": ["mars"],
    });
    let repairs = [
        ("game_modes", json!(["duel", "arena"])),
        ("tags", json!({ long(129): long(513) })),
        ("tags", json!({ "map": long(513) })),
        ("tags", json!({ "map": "dust" })),
        ("tags", json!({})),
        ("max_players", json!(3)),
        ("max_players", json!(null)),
        ("regions", json!(["fra"])),
    ];
    assert_eq!(
        refused_in_turn(&mut body, repairs, async |body| stack.find(body).await).await,
        [
            "MATCHMAKER_GAME_MODE_NOT_FOUND",
            "MATCHMAKER_TOO_MANY_TAGS",
            "MATCHMAKER_TAG_NAME_TOO_LONG",
            "MATCHMAKER_TAG_TOO_LONG",
            "MATCHMAKER_TAGS_DISABLED",
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED",
            "MATCHMAKER_REGION_NOT_FOUND",
        ]
    );
    assert_eq!(stack.find(body).await.status, 200);
}

#[tokio::test]
async fn find_checks_that_a_mode_can_be_found_after_its_regions() {
    let stack = TestStack::start().await;
    let modes = json!({ "shut": { "regions": ["fra"], "actions": { "find": { "enabled": false } } } });
    let game = stack.make_game("shut", modes, 1, 1).await;
    for (regions, code) in [
        (json!(["nyc"]), "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE"),
        (json!(["fra"]), "MATCHMAKER_FIND_DISABLED"),
        (json!([]), "MATCHMAKER_FIND_DISABLED"),
    ] {
        let answer = game.find(&stack, json!({ "game_modes": ["shut"], "regions": regions })).await;
        assert_eq!(answer.refusal(), (400, code), "{regions}");
    }
}

/// The codes with which `body` is refused, before each repair.
async fn refused_in_turn<const N: usize>(
    body: &mut Value,
    repairs: [(&str, Value); N],
    call: impl AsyncFn(Value) -> Answer,
) -> [String; N] {
    let mut refusals = [const { String::new() }; N];
    for ((field, repaired), code) in repairs.into_iter().zip(&mut refusals) {
        let answer = call(body.clone()).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        answer.refusal().1.clone_into(code);
        body[field] = repaired;
    }
    refusals
}

#[tokio::test]
async fn create_looks_at_mode_then_tags_then_max_players_then_region_then_whether_it_may() {
    let stack = TestStack::start().await;
    let modes = json!({
        "plain": { "regions": ["fra"] },
        "rich": { "regions": ["fra"], "taggable": true, "allow_dynamic_max_players": true },
        "open": {
            "regions": ["fra"], "taggable": true, "allow_dynamic_max_players": true,
            "actions": { "create": { "enabled": true } },
        },
    });
    // No lobby more, and no place for one.
    let game = stack.make_game("full", modes, 1, 1).await;
    game.find(&stack, json!({ "game_modes": ["open"] })).await.expect_ok();
    let nine_tags: serde_json::Map<_, _> = (0..9).map(|n| (n.to_string(), json!("x"))).collect();
    let long = |bytes: usize| "x".repeat(bytes);
    let mut body = json!({ "game_mode": "chess", "tags": nine_tags, "max_players": 0, "region": "mars" });
    let repairs = [
        ("game_mode", json!("plain")),
        ("tags", json!({ long(129): long(513) })),
        ("tags", json!({ "map": long(513) })),
        ("tags", json!({ "map": "dust" })),
        ("tags", json!({})),
        ("max_players", json!(3)),
        ("game_mode", json!("rich")),
        ("region", json!("nyc")),
        ("region", json!("fra")),
        ("game_mode", json!("open")),
    ];
    assert_eq!(
        refused_in_turn(&mut body, repairs, async |body| game.play(&stack, "lobbies/create", body).await)
            .await,
        [
            "MATCHMAKER_GAME_MODE_NOT_FOUND",
            "MATCHMAKER_TOO_MANY_TAGS",
            "MATCHMAKER_TAG_NAME_TOO_LONG",
            "MATCHMAKER_TAG_TOO_LONG",
            "MATCHMAKER_TAGS_DISABLED",
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED",
            "MATCHMAKER_REGION_NOT_FOUND",
            "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE",
            "MATCHMAKER_CUSTOM_LOBBIES_DISABLED",
        ]
    );
    let at_cap = game.play(&stack, "lobbies/create", body).await;
    assert_eq!(at_cap.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "before servers");
}

#[tokio::test]
async fn join_checks_that_the_lobby_lives_then_its_mode_then_its_seats() {
    let stack = TestStack::start().await;
    let shut = json!({ "regions": ["fra"], "max_players": 1, "actions": { "join": { "enabled": false } } });
    let game = stack.make_game("shut", json!({ "shut": shut }), 9, 9).await;
    let lobby_id = game.find(&stack, json!({ "game_modes": ["shut"] })).await.expect_ok().lobby_id();
    let join = || game.join(&stack, &lobby_id);
    assert_eq!(join().await.refusal(), (400, "MATCHMAKER_JOIN_DISABLED"));
    game.end_lobby(&stack, &lobby_id).await.expect_ok();
    assert_eq!(join().await.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
}

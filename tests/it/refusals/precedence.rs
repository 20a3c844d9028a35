//! Which of several refusals is answered.

use muster_tests::TestStack;
use serde_json::json;

use super::{Operation, Right};

const BROKEN_BODY: &str = "{";

fn oversized_body() -> String {
    format!("{{{}}}", " ".repeat(64 * 1024))
}

#[tokio::test]
async fn a_cloud_operation_looks_at_path_then_token_then_game_then_namespace_then_body() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"] } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let demo = stack.demo();
    let (game_id, namespace_id) = (demo.game_id.as_str(), demo.namespace_id.as_str());
    let cloud = Some(demo.tokens.cloud.as_str());
    let public = Some(demo.tokens.public.as_str());
    let theirs = Some(other.created.cloud_token.reveal());
    let oversized = oversized_body();
    for operation in Operation::with(Right::Cloud) {
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
                let path = operation.path_in(game_id, namespace_id);
                let answer = stack.call(operation.method.clone(), &path, token, body.to_owned()).await;
                assert_eq!(answer.refusal(), refusal, "{} {path}", operation.method);
            }
        }
        let oversized = operation.call_with(&stack, oversized_body()).await;
        assert_eq!(oversized.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation:?}");
    }
}

#[tokio::test]
async fn find_looks_at_the_body_then_at_the_modes_then_at_the_token() {
    let stack = TestStack::start().await;
    let no_mode = (400, "MATCHMAKER_NO_GAME_MODE_PROVIDED");
    let bad_body = (400, "API_BAD_BODY");
    let oversized = oversized_body();
    for operation in Operation::with(Right::Player) {
        for token in [None, Some("x"), Some(stack.demo().tokens.server.as_str())] {
            for (body, refusal) in [
                (oversized.as_str(), (413, "API_BODY_TOO_LARGE")),
                (BROKEN_BODY, bad_body),
                ("", bad_body),
                (r#"{"game_modes": "arena"}"#, bad_body),
                (r#"{"game_modes": [], "max_players": -1}"#, bad_body),
                (r#"{"game_modes": []}"#, no_mode),
                (r#"{"game_modes": [], "regions": ["mars"], "max_players": 0}"#, no_mode),
            ] {
                let answer = operation.call_with_body(&stack, token, body.to_owned()).await;
                assert_eq!(answer.refusal(), refusal, "{operation:?} {:.40}", body);
            }
        }
        for (token, refusal) in [
            (None, (401, "API_UNAUTHORIZED")),
            (Some("x"), (401, "TOKEN_INVALID")),
            (Some(stack.demo().tokens.server.as_str()), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ] {
            let unknown_mode = r#"{"game_modes": ["chess"], "regions": ["mars"], "max_players": 0}"#;
            let answer = operation.call_with_body(&stack, token, unknown_mode).await;
            assert_eq!(answer.refusal(), refusal, "{operation:?}");
        }
    }
}

#[tokio::test]
async fn find_looks_at_modes_then_tags_then_max_players_then_regions() {
    let stack = TestStack::start().await;
    let nine_tags: serde_json::Map<_, _> = (0..9).map(|n| (n.to_string(), json!("x"))).collect();
    let long = |bytes: usize| "x".repeat(bytes);
    let mut body = json!({
        "game_modes": ["duel", "chess"],
        "tags": nine_tags,
        "max_players": 0,
        "regions": ["mars"],
    });
    let mut refusals = Vec::new();
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
    for (field, repaired) in repairs {
        let answer = stack.find(body.clone()).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        refusals.push(answer.refusal().1.to_owned());
        body[field] = repaired;
    }
    assert_eq!(
        refusals,
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
async fn find_tells_a_mode_that_cannot_be_found_after_a_region_that_it_lacks() {
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

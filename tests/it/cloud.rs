//! The cloud operations: bootstrap, validation, CDN authentication, version.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use harness::{Answer, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::models::{
    ids::NamespaceId,
    namespace::{CdnAuthType, Namespace},
};

mod actions;
mod auth_users;
mod deleting;
mod namespaces;
mod tokens;

/// A cloud operation on one of the demo's namespaces, with the demo's cloud token.
async fn call_on(
    stack: &TestStack,
    namespace_id: &NamespaceId,
    method: Method,
    operation: &str,
    body: Value,
) -> Answer {
    let game_id = &stack.demo().game_id;
    let path = format!("/cloud/games/{game_id}/namespaces/{namespace_id}/{operation}");
    let token = Some(stack.demo().tokens.cloud.as_str());
    stack.call(method, &path, token, body.to_string()).await
}

async fn call(stack: &TestStack, method: Method, operation: &str, body: Value) -> Answer {
    call_on(stack, &stack.demo().namespace_id, method, operation, body).await
}

async fn namespace(stack: &TestStack, id: &NamespaceId) -> Namespace {
    let read = stack.store().namespace(&stack.demo().game_id, id).await;
    read.unwrap().unwrap()
}

async fn set_version(stack: &TestStack, version_id: &str) -> Answer {
    call(stack, Method::PUT, "version", json!({ "version_id": version_id })).await
}

#[tokio::test]
async fn bootstrap_answers_every_caller() {
    let stack = TestStack::start().await;
    for token in [None, Some("x"), Some(stack.demo().tokens.cloud.as_str())] {
        let answer = stack.call(Method::GET, "/cloud/bootstrap", token, "").await;
        assert_eq!(
            answer.expect_ok().body,
            json!({
                "access": "private",
                "captcha": {},
                "cluster": "oss",
                "login_methods": { "access_token": true, "email": false },
                "origins": { "hub": "http://localhost:3000" },
            })
        );
    }
}

#[tokio::test]
async fn validation_names_each_value_that_would_be_refused() {
    let stack = TestStack::start().await;
    let lobbies = |violation: &str| json!({ "path": ["lobby-count", violation] });
    let players = || {
        let mut errors = vec![json!({ "path": ["max-players", "too-low"] })];
        errors.extend(
            ["client", "vpn", "proxy", "tor", "hosting"]
                .map(|source| json!({ "path": ["max-players", source, "too-low"] })),
        );
        errors
    };
    let both = [vec![lobbies("too-low")], players()].concat();
    let high_and_low = [vec![lobbies("too-high")], players()].concat();
    for (lobby_count_max, max_players, errors) in [
        (1, 1, vec![]),
        (128, 8, vec![]),
        (32_767, u32::MAX, vec![]),
        (32_767, 1_001, vec![]),
        (0, 1, vec![lobbies("too-low")]),
        (32_768, 1, vec![lobbies("too-high")]),
        (u32::MAX, u32::MAX, vec![lobbies("too-high")]),
        (1, 0, players()),
        (0, 0, both),
        (u32::MAX, 0, high_and_low),
    ] {
        let body = json!({ "lobby_count_max": lobby_count_max, "max_players": max_players });
        let answer = call(&stack, Method::POST, "mm-config/validate", body.clone()).await;
        assert_eq!(answer.expect_ok().body, json!({ "errors": errors }), "{body}");
    }
}

#[tokio::test]
async fn validation_changes_nothing() {
    let stack = TestStack::start().await;
    let id = &stack.demo().namespace_id;
    let before = namespace(&stack, id).await;
    let body = json!({ "lobby_count_max": 7, "max_players": 7 });
    let _answer = call(&stack, Method::POST, "mm-config/validate", body).await.expect_ok();
    assert_eq!(namespace(&stack, id).await, before);
}

#[tokio::test]
async fn the_cdn_authenticates_as_it_was_last_set() {
    let stack = TestStack::start().await;
    let id = &stack.demo().namespace_id;
    assert_eq!(namespace(&stack, id).await.cdn_auth_type, CdnAuthType::None);
    for (text, auth_type) in [
        ("basic", CdnAuthType::Basic),
        ("basic", CdnAuthType::Basic),
        ("none", CdnAuthType::None),
        ("none", CdnAuthType::None),
        ("basic", CdnAuthType::Basic),
    ] {
        let answer = call(&stack, Method::PUT, "cdn-auth", json!({ "auth_type": text })).await;
        assert_eq!(answer.expect_ok().body, json!({}));
        assert_eq!(namespace(&stack, id).await.cdn_auth_type, auth_type);
    }
    for text in ["", "Basic", "BASIC", " basic", "digest", "jwt"] {
        let answer = call(&stack, Method::PUT, "cdn-auth", json!({ "auth_type": text })).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{text}");
    }
    assert_eq!(namespace(&stack, id).await.cdn_auth_type, CdnAuthType::Basic);
}

#[tokio::test]
async fn a_namespace_runs_the_version_it_was_set_to() {
    let stack = TestStack::start().await;
    let id = &stack.demo().namespace_id;
    let [first, second] = stack.demo().version_ids.as_slice() else {
        panic!("the demo has two versions");
    };
    assert_eq!(stack.version_history(&stack.demo().namespace_id).await, std::slice::from_ref(first));
    stack.clock.advance(Duration::from_millis(1));
    let answer = set_version(&stack, second.as_str()).await;
    assert_eq!(answer.expect_ok().body, json!({}));
    assert_eq!(namespace(&stack, id).await.version_id, *second);
    assert_eq!(stack.version_history(&stack.demo().namespace_id).await, [second.clone(), first.clone()]);
}

#[tokio::test]
async fn setting_the_same_version_again_is_no_change() {
    let stack = TestStack::start().await;
    let current = stack.demo().version_ids[0].as_str();
    for _ in 0..3 {
        stack.clock.advance(Duration::from_millis(1));
        assert_eq!(set_version(&stack, current).await.expect_ok().body, json!({}));
    }
    assert_eq!(stack.version_history(&stack.demo().namespace_id).await.len(), 1);
}

#[tokio::test]
async fn a_version_that_the_game_lacks_changes_nothing() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"] } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let id = &stack.demo().namespace_id;
    let before = namespace(&stack, id).await;
    let long = "x".repeat(65);
    for version_id in [
        "unknown",
        "00000000-0000-0000-0000-000000000000",
        other.created.version.version_id.as_str(),
        // Identifiers of other things of the same game.
        stack.demo().game_id.as_str(),
        id.as_str(),
        "",
        " ",
        "a b",
        "a/b",
        "..",
        "ä",
        "#",
        &long,
    ] {
        let answer = set_version(&stack, version_id).await;
        assert_eq!(answer.refusal(), (404, "CLOUD_VERSION_NOT_FOUND"), "{version_id}");
    }
    assert_eq!(namespace(&stack, id).await, before);
    assert_eq!(stack.version_history(&stack.demo().namespace_id).await, [before.version_id]);
}

#[tokio::test]
async fn the_history_has_changes_of_one_millisecond_in_their_order() {
    let stack = TestStack::start().await;
    let versions = &stack.demo().version_ids;
    let mut expected = vec![versions[0].clone()];
    for change in 1..=12 {
        let version_id = &versions[change % 2];
        let _set = set_version(&stack, version_id.as_str()).await.expect_ok();
        expected.insert(0, version_id.clone());
        assert_eq!(
            stack.version_history(&stack.demo().namespace_id).await,
            expected,
            "after {change} changes"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_version_leave_a_history_that_ends_at_the_current_one() {
    let stack = TestStack::start().await;
    let id = &stack.demo().namespace_id;
    let versions = &stack.demo().version_ids;
    for round in 0..4 {
        let changes = (0..6).map(|index| set_version(&stack, versions[(index + round) % 2].as_str()));
        for answer in join_all(changes).await {
            let refusal = answer.refusal();
            let is_expected = matches!(refusal, (200, "") | (503, "API_UNAVAILABLE"));
            assert!(is_expected, "{refusal:?}");
        }
        let history = stack.version_history(&stack.demo().namespace_id).await;
        // A change is from one version to another, so no two neighbours are the same.
        assert!(history.windows(2).all(|pair| pair[0] != pair[1]), "{history:?}");
        assert_eq!(history[0], namespace(&stack, id).await.version_id);
    }
}

#[tokio::test]
async fn operations_on_one_namespace_leave_the_other_alone() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let (here, there) = (&demo.namespace_id, &demo.other_namespace_id);
    let state = async |id: &NamespaceId| {
        let cdn = stack.store().cdn_settings(&stack.right(id).await).await.unwrap();
        (namespace(&stack, id).await, cdn, stack.version_history(id).await)
    };
    let before = state(here).await;
    let hash = auth_users::hash();
    for (method, operation, body) in [
        (Method::PUT, "cdn-auth", json!({ "auth_type": "basic" })),
        (Method::POST, "auth-user", json!({ "user": "nightly", "password": hash })),
        (Method::PUT, "version", json!({ "version_id": demo.version_ids[1] })),
    ] {
        let answer = call_on(&stack, there, method, operation, body).await;
        assert_eq!(answer.expect_ok().body, json!({}), "{operation}");
    }
    assert_eq!(state(here).await, before, "I11");

    let (changed, cdn, history) = state(there).await;
    assert_eq!(changed.cdn_auth_type, CdnAuthType::Basic);
    assert_eq!(changed.version_id, demo.version_ids[1]);
    assert_eq!(cdn.users, ["nightly"]);
    let versions: BTreeSet<_> = history.into_iter().collect();
    assert_eq!(versions, demo.version_ids.iter().cloned().collect());
}

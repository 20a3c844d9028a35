//! Issued tokens: each is noted, can be revoked by its identifier, and no response contains what would be as
//! good as one.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{Answer, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    models::{
        ids::TokenId,
        namespace::REVOKED_TOKENS_MAX,
        rights::GameRight,
        token::{CloudToken, TokenKind},
    },
    store::tokens::{IssuedToken, RevokeOutcome},
};

use super::{auth_users, call};

/// How long the local stack remembers settings.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

async fn issue(stack: &TestStack, path: &str, body: Value) -> String {
    let path = format!("/cloud/games/{}/{path}", stack.demo().game_id);
    let answer = stack.call(Method::POST, &path, Some(&stack.demo().tokens.cloud), body.to_string()).await;
    answer.expect_ok().body["token"].as_str().unwrap().to_owned()
}

async fn issue_public(stack: &TestStack) -> String {
    issue(stack, &format!("namespaces/{}/tokens/public", stack.demo().namespace_id), json!({})).await
}

async fn noted(stack: &TestStack) -> Vec<IssuedToken> {
    stack.store().issued_tokens(&stack.demo().game_id).await.unwrap()
}

fn right(stack: &TestStack) -> GameRight {
    GameRight::of_operator(stack.demo().game_id.clone())
}

async fn revoke(stack: &TestStack, id: &TokenId) -> RevokeOutcome {
    stack.store().revoke_token(&right(stack), id, stack.clock.now()).await.unwrap()
}

async fn regions(stack: &TestStack, token: &str) -> Answer {
    stack.call(Method::GET, "/matchmaker/regions", Some(token), "").await
}

/// The identifier of the only token that `after` has and `before` has not.
fn added(before: &[IssuedToken], after: &[IssuedToken]) -> IssuedToken {
    let mut added = after.iter().filter(|token| !before.contains(token));
    let (Some(token), None) = (added.next(), added.next()) else { panic!("{before:?} {after:?}") };
    token.clone()
}

#[tokio::test]
async fn each_issued_token_is_noted_by_its_identifier_and_dates() {
    let stack = TestStack::start().await;
    let namespace = format!("namespaces/{}/tokens", stack.demo().namespace_id);
    let host = json!({ "hostname": "a.example", "ports": { "game": { "port": 7, "protocol": "udp" } } });
    for (path, body, kind) in [
        (format!("{namespace}/public"), json!({}), TokenKind::Public),
        (format!("{namespace}/server"), json!({}), TokenKind::Server),
        (format!("{namespace}/development"), host, TokenKind::Development),
        ("tokens/cloud".to_owned(), json!({}), TokenKind::Cloud),
    ] {
        let before = noted(&stack).await;
        let text = issue(&stack, &path, body).await;
        let token = added(&before, &noted(&stack).await);
        assert_eq!((token.kind, token.revoked_at), (Some(kind), None));
        let is_cloud = kind == TokenKind::Cloud;
        assert_eq!(token.namespace_id.is_none(), is_cloud);
        assert_eq!(token.expires_at.is_none(), is_cloud);
        assert!(stack.clock.now().since(token.issued_at) < Duration::from_secs(1), "{path}");
        if !is_cloud {
            assert!(
                format!("{:?}", stack.stack.keys().verify(&text, stack.clock.now()))
                    .contains(token.token_id.as_str())
            );
        }
    }
}

#[tokio::test]
async fn a_revoked_token_counts_no_more_and_the_others_go_on() {
    let stack = TestStack::start().await;
    let before = noted(&stack).await;
    let (first, second) = (issue_public(&stack).await, issue_public(&stack).await);
    let of = |text: &str| {
        let claims = format!("{:?}", stack.stack.keys().verify(text, stack.clock.now()));
        move |token: &&IssuedToken| claims.contains(token.token_id.as_str())
    };
    let after = noted(&stack).await;
    let id = after.iter().find(of(&first)).unwrap().token_id.clone();
    assert_eq!(after.len(), before.len() + 2);
    assert_eq!(revoke(&stack, &id).await, RevokeOutcome::Revoked);
    assert_eq!(revoke(&stack, &id).await, RevokeOutcome::RevokedBefore);
    assert_eq!(revoke(&stack, &"unknown".parse().unwrap()).await, RevokeOutcome::Unknown);
    stack.clock.advance(SETTINGS_AGE_MAX);
    assert_eq!(regions(&stack, &first).await.refusal(), (401, "TOKEN_REVOKED"));
    assert_eq!(regions(&stack, &second).await.status, 200);
    let revoked: Vec<_> =
        noted(&stack).await.into_iter().filter(|token| token.revoked_at.is_some()).collect();
    assert_eq!(revoked.iter().map(|token| &token.token_id).collect::<Vec<_>>(), [&id]);
}

#[tokio::test]
async fn a_revoked_cloud_token_opens_nothing() {
    let stack = TestStack::start().await;
    let before = noted(&stack).await;
    let token = issue(&stack, "tokens/cloud", json!({})).await;
    let path = format!("/cloud/games/{}", stack.demo().game_id);
    let ask = async |token: &str| stack.call(Method::GET, &path, Some(token), "").await;
    assert_eq!(ask(&token).await.status, 200);
    let id = added(&before, &noted(&stack).await).token_id;
    assert_eq!(revoke(&stack, &id).await, RevokeOutcome::Revoked);
    assert_eq!(ask(&token).await.refusal(), (401, "TOKEN_REVOKED"));
    assert_eq!(revoke(&stack, &id).await, RevokeOutcome::RevokedBefore);
    assert_eq!(ask(&stack.demo().tokens.cloud).await.status, 200);
}

#[tokio::test]
async fn a_namespace_remembers_a_hundred_single_revocations_and_forgets_those_that_a_date_covers() {
    let stack = TestStack::start().await;
    let demo_public = stack.demo().tokens.public.clone();
    let mut ids = Vec::new();
    for _ in 0..REVOKED_TOKENS_MAX + 4 {
        let before = noted(&stack).await;
        let _text = issue_public(&stack).await;
        ids.push(added(&before, &noted(&stack).await).token_id);
    }
    let outcomes = join_all(ids.iter().map(|id| revoke(&stack, id))).await;
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert_eq!((count(RevokeOutcome::Revoked), count(RevokeOutcome::TooMany)), (REVOKED_TOKENS_MAX, 4));
    let revocations = async || stack.right(&stack.demo().namespace_id).await.namespace().revocations.clone();
    assert_eq!(revocations().await.token_ids.len(), REVOKED_TOKENS_MAX);

    stack.clock.advance(Duration::from_secs(2));
    let right = stack.right(&stack.demo().namespace_id).await;
    let limit = stack.clock.now();
    stack.store().revoke_tokens_before(&right, TokenKind::Public, limit).await.unwrap();
    assert!(revocations().await.token_ids.is_empty());
    stack.clock.advance(SETTINGS_AGE_MAX);
    assert_eq!(regions(&stack, &demo_public).await.refusal(), (401, "TOKEN_REVOKED"));
    let fresh = issue_public(&stack).await;
    assert_eq!(regions(&stack, &fresh).await.status, 200);
    // An earlier date revokes nothing more and restores nothing.
    stack.store().revoke_tokens_before(&right, TokenKind::Public, Timestamp(1)).await.unwrap();
    stack.clock.advance(SETTINGS_AGE_MAX);
    assert_eq!(regions(&stack, &demo_public).await.refusal(), (401, "TOKEN_REVOKED"));
}

#[tokio::test]
async fn no_answer_holds_a_hash_or_the_digest_of_a_token() {
    let stack = TestStack::start().await;
    let hash = auth_users::hash();
    let added = json!({ "user": "nightly", "password": hash });
    let _added = call(&stack, Method::POST, "auth-user", added).await.expect_ok();
    let cloud = &stack.demo().tokens.cloud;
    let secrets = [hash, CloudToken::parse(cloud).unwrap().digest()];
    let document = crate::agreement::document::Document::read();
    let scene = crate::refusals::scene::Scene::on(&stack).await;
    let mut answers = 0;
    for operation in document.operations() {
        let examples = operation.request_examples().into_iter().flatten().map(ToString::to_string);
        for body in
            examples.chain(["".to_owned(), "[".to_owned(), json!({ "password": secrets[0] }).to_string()])
        {
            for token in [None, Some(cloud.as_str()), Some(secrets[1].as_str())] {
                let path = scene.path(operation.path);
                let answer = stack.call(operation.method.clone(), &path, token, body.clone()).await;
                let text = format!("{:?} {}", answer.headers, answer.body);
                let leaked = secrets.iter().find(|secret| text.contains(secret.as_str()));
                assert_eq!(leaked, None, "{} {body}", operation.id);
                answers += 1;
            }
        }
    }
    assert!(answers > 300, "{answers}");
}

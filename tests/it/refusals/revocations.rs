//! Tokens that were good until they were revoked.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use muster_tests::TestStack;
use shared::{
    ambient::Timestamp,
    ids::TokenId,
    provision::issue_cloud_token,
    tokens::{Claims, CloudToken, CredentialKind},
};

use super::{Operation, Right, write_to_namespace};

/// How old the settings of the local stack may be.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

async fn revoke(stack: &TestStack, not_before: &[(&str, Timestamp)], token_ids: &[&TokenId]) {
    let not_before =
        not_before.iter().map(|(kind, limit)| ((*kind).to_owned(), AttributeValue::N(limit.to_string())));
    let token_ids = token_ids.iter().map(|id| AttributeValue::S(id.to_string()));
    let revocations = HashMap::from([
        ("not_before".to_owned(), AttributeValue::M(not_before.collect())),
        ("token_ids".to_owned(), AttributeValue::L(token_ids.collect())),
    ]);
    let (game_id, namespace_id) = (&stack.demo().game_id, &stack.demo().namespace_id);
    let revocations = AttributeValue::M(revocations);
    write_to_namespace(stack, game_id, namespace_id, "revocations", revocations).await;
    stack.clock.advance(SETTINGS_AGE_MAX);
}

fn token_id(stack: &TestStack, token: &str) -> TokenId {
    match stack.stack.keys().verify(token, stack.clock.now()) {
        Ok(Claims::Public(credential) | Claims::Development(credential, _)) => credential.token_id,
        other => panic!("no credential: {other:?}"),
    }
}

fn fresh_public(stack: &TestStack) -> String {
    let demo = stack.demo();
    let (keys, kind) = (stack.stack.keys(), CredentialKind::Public);
    keys.issue_credential(kind, &demo.game_id, &demo.namespace_id, &stack.ambient())
}

/// Tells for each token whether every operation for players takes it (`true`) or calls it revoked.
async fn check(stack: &TestStack, tokens: &[(&str, bool)]) {
    for operation in Operation::with(Right::Player) {
        for (index, (token, counts)) in tokens.iter().enumerate() {
            let answer = operation.call(stack, Some(token)).await;
            let expected = if *counts { (200, "") } else { (401, "TOKEN_REVOKED") };
            assert_eq!(answer.refusal(), expected, "{operation:?}, token {index}");
        }
    }
}

#[tokio::test]
async fn a_token_revoked_by_its_id_is_refused_and_no_other() {
    let stack = TestStack::start().await;
    let tokens = &stack.demo().tokens;
    let second = fresh_public(&stack);
    check(&stack, &[(&tokens.public, true), (&second, true), (&tokens.development, true)]).await;

    revoke(&stack, &[], &[&token_id(&stack, &tokens.public)]).await;
    check(&stack, &[(&tokens.public, false), (&second, true), (&tokens.development, true)]).await;

    revoke(&stack, &[], &[&token_id(&stack, &tokens.development)]).await;
    check(&stack, &[(&tokens.public, true), (&second, true), (&tokens.development, false)]).await;
}

#[tokio::test]
async fn tokens_issued_before_their_kinds_limit_are_refused_and_later_ones_are_not() {
    let stack = TestStack::start().await;
    let tokens = &stack.demo().tokens;
    check(&stack, &[(&tokens.public, true), (&tokens.development, true)]).await;
    stack.clock.advance(Duration::from_secs(1));
    let limit = Timestamp(stack.clock.now().secs() * 1_000);
    let later = fresh_public(&stack);

    revoke(&stack, &[("public", limit)], &[]).await;
    check(&stack, &[(&tokens.public, false), (&later, true), (&tokens.development, true)]).await;

    revoke(&stack, &[("development", limit), ("server", limit)], &[]).await;
    check(&stack, &[(&tokens.public, true), (&later, true), (&tokens.development, false)]).await;
}

#[tokio::test]
async fn a_revocation_reaches_its_own_namespace_alone() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let (keys, kind) = (stack.stack.keys(), CredentialKind::Public);
    let other = keys.issue_credential(kind, &demo.game_id, &demo.other_namespace_id, &stack.ambient());
    stack.clock.advance(Duration::from_secs(1));
    revoke(&stack, &[("public", stack.clock.now())], &[]).await;
    check(&stack, &[(&demo.tokens.public, false), (&other, true)]).await;
}

#[tokio::test]
async fn a_revoked_cloud_token_is_refused_at_once_and_everywhere() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let cloud = CloudToken::parse(&demo.tokens.cloud).unwrap();
    let write = stack.store().client().update_item();
    let write = write
        .table_name(&stack.store().tables().tokens)
        .key("digest", AttributeValue::S(cloud.digest()))
        .update_expression("SET revoked_at = :now")
        .condition_expression("attribute_exists(digest)")
        .expression_attribute_values(":now", AttributeValue::N(stack.clock.now().to_string()));
    let _written = write.send().await.unwrap();
    for operation in Operation::with(Right::Cloud) {
        for (game_id, namespace_id) in [
            (demo.game_id.as_str(), demo.namespace_id.as_str()),
            (demo.game_id.as_str(), "unknown"),
            ("unknown", demo.namespace_id.as_str()),
        ] {
            let path = operation.path_in(game_id, namespace_id);
            let (method, body) = (operation.method.clone(), operation.valid_body(demo));
            let answer = stack.call(method, &path, Some(&demo.tokens.cloud), body).await;
            assert_eq!(answer.refusal(), (401, "TOKEN_REVOKED"), "{operation:?}");
        }
    }
    let fresh = issue_cloud_token(stack.store(), &stack.ambient(), &demo.game_id).await.unwrap();
    for operation in Operation::with(Right::Cloud) {
        let answer = operation.call(&stack, Some(fresh.reveal())).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
    }
}

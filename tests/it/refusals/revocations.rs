//! Tokens that were good until they were revoked.

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{TestStack, all_servers, alter};
use http::Method;
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    cloud::issuing::{Issuer, issue_cloud_token},
    hosting::{game_server::GameServers, revoked::Sweep},
    models::{
        ids::{NamespaceId, TokenId},
        lobby::Stage,
        rights::GameRight,
        token::{Claims, CloudToken, Credential, CredentialKind, LobbyClaims},
    },
    store::tokens::RevokeOutcome,
};

use super::{
    operation::Operation,
    scene::{Scene, write_to_namespace},
};

/// How old the settings of the local stack may be.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// Revokes credentials of the demo's namespace: those of kinds from before a time, and some by identifier.
pub async fn revoke(stack: &TestStack, not_before: &[(&str, Timestamp)], token_ids: &[&TokenId]) {
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

/// Revokes a cloud token past every operation.
pub async fn revoke_cloud_token(stack: &TestStack, token: &CloudToken) {
    let (store, key) = (stack.store(), [("digest", &*token.digest())]);
    let now = AttributeValue::N(stack.clock.now().to_string());
    alter(store, &store.tables().tokens, &key, "SET #revoked_at = :now", &[(":now", now)]).await;
}

pub fn token_id(stack: &TestStack, token: &str) -> TokenId {
    match stack.stack.keys().verify(token, stack.clock.now()) {
        Ok(Claims::Public(credential) | Claims::Server(credential) | Claims::Development(credential, _)) => {
            credential.token_id
        }
        other => panic!("no credential: {other:?}"),
    }
}

fn fresh(stack: &TestStack, kind: CredentialKind, namespace_id: &NamespaceId) -> String {
    stack
        .stack
        .keys()
        .issue_credential(kind, &Credential::fresh(&stack.demo().game_id, namespace_id, &stack.ambient()))
}

fn fresh_public(stack: &TestStack) -> String {
    fresh(stack, CredentialKind::Public, &stack.demo().namespace_id)
}

fn fresh_server(stack: &TestStack) -> String {
    fresh(stack, CredentialKind::Server, &stack.demo().namespace_id)
}

/// Tells for each token, after its kind, whether every operation that takes its kind takes it (`true`) or
/// calls it revoked.
///
/// Scenes need a public and a server token that count, which those of the demo need not.
async fn check(stack: &TestStack, tokens: &[(&str, &str, bool)]) {
    for (index, (kind, token, counts)) in tokens.iter().enumerate() {
        for operation in Operation::taking(kind) {
            let scene = Scene::with(stack, &fresh_public(stack), &fresh_server(stack)).await;
            let answer = operation.call(&scene, Some(token)).await;
            let expected = if *counts { (200, "") } else { (401, "TOKEN_REVOKED") };
            assert_eq!(answer.refusal(), expected, "{operation}, token {index}");
        }
    }
}

#[tokio::test]
async fn a_token_revoked_by_its_id_is_refused_and_no_other() {
    let stack = TestStack::start().await;
    let tokens = &stack.demo().tokens;
    let (second, second_server) = (fresh_public(&stack), fresh_server(&stack));
    let mut expected = [
        ("public", tokens.public.as_str(), true),
        ("server", &tokens.server, true),
        ("development", &tokens.development, true),
        ("public", &second, true),
        ("server", &second_server, true),
    ];
    check(&stack, &expected).await;
    for revoked in 0..3 {
        revoke(&stack, &[], &[&token_id(&stack, expected[revoked].1)]).await;
        expected[revoked].2 = false;
        check(&stack, &expected).await;
        expected[revoked].2 = true;
    }
    let first_three: Vec<_> = expected[..3].iter().map(|(_, token, _)| token_id(&stack, token)).collect();
    revoke(&stack, &[], &first_three.iter().collect::<Vec<_>>()).await;
    for (_, _, counts) in &mut expected[..3] {
        *counts = false;
    }
    check(&stack, &expected).await;
}

#[tokio::test]
async fn tokens_issued_before_their_kinds_limit_are_refused_and_later_ones_are_not() {
    let stack = TestStack::start().await;
    let tokens = &stack.demo().tokens;
    let (public, server, development) = (&tokens.public, &tokens.server, &tokens.development);
    check(&stack, &[("public", public, true), ("server", server, true), ("development", development, true)])
        .await;
    stack.clock.advance(Duration::from_secs(1));
    let limit = Timestamp(stack.clock.now().secs() * 1_000);
    let (later, later_server) = (fresh_public(&stack), fresh_server(&stack));
    for (limits, counts) in [
        (vec![("public", limit)], [false, true, true]),
        (vec![("server", limit)], [true, false, true]),
        (vec![("development", limit), ("server", limit)], [true, false, false]),
    ] {
        revoke(&stack, &limits, &[]).await;
        let expected = [
            ("public", public.as_str(), counts[0]),
            ("server", server, counts[1]),
            ("development", development, counts[2]),
            ("public", &later, true),
            ("server", &later_server, true),
        ];
        check(&stack, &expected).await;
    }
}

/// The lobby token of a scene as a game server with the server token `server` got it.
fn obtained_with(scene: &Scene<'_>, server: &str) -> String {
    let (keys, now) = (scene.stack.stack.keys(), scene.stack.clock.now());
    let Ok(Claims::Server(server)) = keys.verify(server, now) else { panic!("no server token: {server}") };
    keys.issue_lobby(&LobbyClaims { server, lobby_id: scene.lobby_id.parse().unwrap() }, now)
}

#[tokio::test]
async fn a_lobby_token_counts_as_long_as_the_server_token_that_it_was_obtained_with() {
    let stack = TestStack::start().await;
    let (revoked, kept) = (fresh_server(&stack), fresh_server(&stack));
    let (mut of_revoked, mut of_kept) = (Vec::new(), Vec::new());
    for operation in Operation::taking("lobby") {
        let scene = Scene::on(&stack).await;
        of_revoked.push((operation, obtained_with(&scene, &revoked), scene));
        let scene = Scene::on(&stack).await;
        of_kept.push((operation, obtained_with(&scene, &kept), scene));
    }
    revoke(&stack, &[], &[&token_id(&stack, &revoked)]).await;
    for (operation, token, scene) in of_revoked {
        let answer = operation.call(&scene, Some(&token)).await;
        assert_eq!(answer.refusal(), (401, "TOKEN_REVOKED"), "{operation}");
    }
    for (operation, token, scene) in of_kept {
        let answer = operation.call(&scene, Some(&token)).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn lobby_tokens_go_with_all_server_tokens_and_outlive_every_other_revocation() {
    let stack = TestStack::start().await;
    let mut scenes = Vec::new();
    for operation in Operation::taking("lobby") {
        scenes.push((operation, Scene::on(&stack).await));
    }
    let old = fresh_server(&stack);
    stack.clock.advance(Duration::from_secs(1));
    let limit = Timestamp(stack.clock.now().secs() * 1_000);
    let new = fresh_server(&stack);
    let others = ["public", "development", "lobby", "player"].map(|kind| (kind, limit));
    revoke(&stack, &others, &[]).await;
    for (operation, scene) in &scenes {
        let answer = operation.call(scene, Some(&obtained_with(scene, &old))).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
    revoke(&stack, &[("server", limit)], &[]).await;
    for operation in Operation::taking("lobby") {
        let scene = Scene::with(&stack, &fresh_public(&stack), &new).await;
        // Issued anew, by an answer to a heartbeat that was on its way: the credential's date counts, not the
        // token's.
        let answer = operation.call(&scene, Some(&obtained_with(&scene, &old))).await;
        assert_eq!(answer.refusal(), (401, "TOKEN_REVOKED"), "{operation}");
        let answer = operation.call(&scene, Some(&obtained_with(&scene, &new))).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn lobby_tokens_of_a_heartbeat_are_revoked_with_its_server_token() {
    let stack = TestStack::start().await;
    let game = stack.make_game("stolen", json!({ "arena": { "regions": ["fra"] } }), 9, 0).await;
    let owner = GameRight::of_operator(game.game_id().clone());
    let right = owner.clone().on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    let issuer = Issuer::new(stack.store().clone(), Arc::clone(stack.stack.keys()), stack.ambient());
    let server = issuer.credential(&right, CredentialKind::Server).await.unwrap();
    let serve = async |operation: &str, body: Value| {
        let path = format!("/matchmaker/servers/{operation}");
        stack.call(Method::POST, &path, Some(&server), body.to_string()).await.expect_ok()
    };
    let registration = json!({ "server_id": "one", "region_id": "fra", "auto_ready": true,
        "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } });
    serve("register", registration).await;
    game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let answer = serve("heartbeat", json!({ "server_id": "one" })).await;
    let token = answer.body["lobbies"][0]["lobby_token"].as_str().unwrap();
    let set_state =
        async || stack.call(Method::PUT, "/matchmaker/lobbies/state", Some(token), "1".to_owned()).await;
    assert_eq!(set_state().await.status, 200);
    let outcome = stack.store().revoke_token(&owner, &token_id(&stack, &server), stack.clock.now()).await;
    assert_eq!(outcome.unwrap(), RevokeOutcome::Revoked);
    stack.clock.advance(SETTINGS_AGE_MAX);
    assert_eq!(set_state().await.refusal(), (401, "TOKEN_REVOKED"));
}

#[tokio::test]
async fn game_servers_of_a_revoked_token_get_no_players_and_what_they_ran_ends() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra", "nyc"], "max_players": 2 } });
    let game = stack.make_game("thief", modes, 500, 0).await;
    let operator = GameRight::of_operator(game.game_id().clone());
    let right = operator.clone().on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    let issuer = Issuer::new(stack.store().clone(), Arc::clone(stack.stack.keys()), stack.ambient());
    let stolen = issuer.credential(&right, CredentialKind::Server).await.unwrap();
    let register = async |token: &str, server_id: &str, region: &str| {
        let body = json!({ "server_id": server_id, "region_id": region, "lease_seconds": 0, "capacity": 300,
            "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } });
        stack.call(Method::POST, "/matchmaker/servers/register", Some(token), body.to_string()).await
    };
    let find =
        async |region: &str| game.find(&stack, json!({ "game_modes": ["arena"], "regions": [region] })).await;
    register(&stolen, "evil", "fra").await.expect_ok();
    register(&game.server, "good", "nyc").await.expect_ok();
    let kept = find("nyc").await.expect_ok();
    let mut ended = Vec::new();
    // More lobbies than one page has.
    for _ in 0..201 {
        ended.push(find("fra").await.expect_ok().lobby_id());
    }
    let outcome = stack.store().revoke_token(&operator, &token_id(&stack, &stolen), stack.clock.now()).await;
    assert_eq!(outcome.unwrap(), RevokeOutcome::Revoked);

    let sweep = async |ambient| {
        let servers = GameServers::new(stack.store().clone(), ambient);
        servers.remove_revoked(&game.created.game, game.namespace_id(), SETTINGS_AGE_MAX).await.unwrap()
    };
    let is_gone = async |server_id: &str| {
        let servers = all_servers(stack.store(), game.namespace_id()).await;
        servers.iter().any(|server| server.server.server_id.as_str() == server_id && server.is_gone())
    };
    // While functions believe settings from before, the thief registers once more.
    let (swept, ()) = tokio::join!(sweep(stack.ambient()), async {
        while !is_gone("evil").await {
            tokio::task::yield_now().await;
        }
        register(&stolen, "evil", "fra").await.expect_ok();
        register(&stolen, "again", "fra").await.expect_ok();
        ended.push(find("fra").await.expect_ok().lobby_id());
        stack.clock.advance(2 * SETTINGS_AGE_MAX);
    });
    let mut removed = swept.removed;
    removed.sort_by(|one, other| one.server_id.cmp(&other.server_id));
    let total: (usize, usize) =
        removed.iter().fold((0, 0), |sum, removed| (sum.0 + removed.lobbies, sum.1 + removed.players));
    let names: Vec<_> = removed.iter().map(|removed| removed.server_id.as_str()).collect();
    assert_eq!((names, total, swept.left), (vec!["again", "evil"], (102, 202), Vec::new()));
    assert_eq!(find("fra").await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(register(&stolen, "evil", "fra").await.refusal(), (401, "TOKEN_REVOKED"));
    for lobby_id in ended {
        assert_eq!(game.lobby(&stack, &lobby_id).await.stage, Stage::Ended);
    }
    assert_eq!(find("nyc").await.expect_ok().lobby_id(), kept.lobby_id());

    // Revoking again sweeps again, and finds nothing.
    let at_once = stack.ambient().with_sleeper(|_| std::future::ready(()));
    assert_eq!(sweep(at_once).await, Sweep::default());
}

#[tokio::test]
async fn a_revocation_reaches_its_own_namespace_alone() {
    let stack = TestStack::start().await;
    let (here, there) = (Scene::on(&stack).await, Scene::in_other_namespace(&stack).await);
    stack.clock.advance(Duration::from_secs(1));
    let now = stack.clock.now();
    revoke(&stack, &[("public", now), ("server", now), ("development", now)], &[]).await;
    for kind in ["public", "server", "development"] {
        for operation in Operation::taking(kind) {
            let refused = operation.call(&here, Some(here.token(kind))).await;
            assert_eq!(refused.refusal(), (401, "TOKEN_REVOKED"), "{operation} {kind}");
            let there = there.another().await;
            let answer = operation.call(&there, Some(there.token(kind))).await;
            assert_eq!(answer.status, 200, "{operation} {kind}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_revoked_cloud_token_is_refused_at_once_and_everywhere() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let demo = stack.demo();
    revoke_cloud_token(&stack, &CloudToken::parse(&demo.tokens.cloud).unwrap()).await;
    for operation in Operation::taking("cloud") {
        for (game_id, namespace_id) in [
            (demo.game_id.as_str(), demo.namespace_id.as_str()),
            (demo.game_id.as_str(), "unknown"),
            ("unknown", demo.namespace_id.as_str()),
        ] {
            let path = operation.path_in(&scene, game_id, namespace_id);
            let (method, body) = (operation.method.clone(), operation.valid_body(&scene));
            let answer = stack.call(method, &path, Some(&demo.tokens.cloud), body).await;
            assert_eq!(answer.refusal(), (401, "TOKEN_REVOKED"), "{operation}");
        }
    }
    let fresh =
        issue_cloud_token(stack.store(), &stack.ambient(), &GameRight::of_operator(demo.game_id.clone()))
            .await
            .unwrap();
    for operation in Operation::taking("cloud") {
        let answer = operation.call(&scene, Some(fresh.reveal())).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

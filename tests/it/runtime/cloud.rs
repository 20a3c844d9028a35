//! What the functions of cloud operations do to the tables.

use std::fs;

use serde_json::json;
use shared::models::{
    namespace::{CdnAuthType, LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT},
    token::Claims,
};

use super::{Deployment, environment, service::Instance, status_and_body};
use crate::artefacts::workspace;

#[tokio::test]
async fn get_bootstrap_returns_the_values_of_the_template() {
    let mut environment = environment("get-bootstrap");
    for (name, value) in [
        ("MUSTER_ACCESS", "public"),
        ("MUSTER_DOMAIN_MAIN", "example.com"),
        ("MUSTER_DOMAIN_CDN", "cdn.example.com"),
        ("MUSTER_DOMAIN_JOB", "job.example.com"),
        ("MUSTER_ORIGIN_HUB", "https://hub.example.com"),
        ("MUSTER_TURNSTILE_SITE_KEY", "0x4AAAAAAA"),
    ] {
        let before = environment.insert(name.to_owned(), value.to_owned());
        assert!(before.is_some(), "the template does not set {name}");
    }
    let mut instance = Instance::start("get-bootstrap", &environment).await;
    let event = fs::read_to_string(workspace().join("tests/events/get-bootstrap.json")).unwrap();
    let response = instance.invoke(&event).await.answer();
    assert_eq!(
        status_and_body(&serde_json::from_str(&event).unwrap(), &response),
        (
            200,
            json!({
                "access": "public",
                "captcha": { "turnstile": { "site_key": "0x4AAAAAAA" } },
                "cluster": "oss",
                "domains": { "main": "example.com", "cdn": "cdn.example.com", "job": "job.example.com" },
                "login_methods": { "access_token": true, "email": false },
                "origins": { "hub": "https://hub.example.com" },
            })
        )
    );
}

#[tokio::test]
async fn validate_matchmaker_config_finds_valid_values_valid() {
    let deployment = Deployment::start().await;
    let name = "validate-matchmaker-config";
    let answer = deployment.answer(name, name).await;
    assert_eq!(answer, (200, json!({ "errors": [] })));
}

#[tokio::test]
async fn set_cdn_auth_type_sets_it() {
    let deployment = Deployment::start().await;
    assert_eq!(deployment.namespace().await.cdn_auth_type, CdnAuthType::None);
    let answer = deployment.answer("set-cdn-auth-type", "set-cdn-auth-type").await;
    assert_eq!(answer, (200, json!({})));
    assert_eq!(deployment.namespace().await.cdn_auth_type, CdnAuthType::Basic);
}

#[tokio::test]
async fn update_cdn_auth_user_adds_the_user() {
    let deployment = Deployment::start().await;
    let name = "update-cdn-auth-user";
    assert_eq!(deployment.answer(name, name).await, (200, json!({})));
    let right = deployment.right().await;
    let users = deployment.stack.store().cdn_settings(&right).await;
    assert_eq!(users.unwrap().users, ["tester"]);
}

#[tokio::test]
async fn update_namespace_version_switches_the_version() {
    let deployment = Deployment::start().await;
    let versions = &deployment.stack.demo().version_ids;
    assert_eq!(deployment.namespace().await.version_id, versions[0]);
    let name = "update-namespace-version";
    assert_eq!(deployment.answer(name, name).await, (200, json!({})));
    assert_eq!(deployment.namespace().await.version_id, versions[1]);
}

#[tokio::test]
async fn create_version_adds_the_version_and_deploys_it_nowhere() {
    let deployment = Deployment::start().await;
    let deployed = deployment.namespace().await.version_id;
    let (_, body) = deployment.succeed("create-version").await;
    let id = body["version_id"].as_str().unwrap().parse().unwrap();
    let version = deployment.stack.store().version(deployment.game_id(), &id).await.unwrap().unwrap();
    assert_eq!((version.display_name.as_str(), version.config.game_modes.len()), ("1.2", 1));
    assert_eq!(version.config.game_modes.values().next().unwrap().max_players, 10);
    assert_eq!(deployment.namespace().await.version_id, deployed);
}

#[tokio::test]
async fn create_namespace_adds_the_namespace_with_the_usual_settings() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("create-namespace").await;
    let id = body["namespace_id"].as_str().unwrap().parse().unwrap();
    let namespace = deployment.stack.store().namespace(deployment.game_id(), &id).await.unwrap().unwrap();
    assert_eq!((namespace.name_id.as_str(), namespace.display_name.as_str()), ("tournament", "Tournament"));
    assert_eq!(namespace.version_id, deployment.stack.demo().version_ids[1]);
    assert_eq!(
        (namespace.lobby_count_max, namespace.max_players_per_client),
        (LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT)
    );
    let (status, body) = deployment.answer("create-namespace", "create-namespace").await;
    assert_eq!((status, &body["code"]), (409, &json!("CLOUD_NAME_TAKEN")));
}

#[tokio::test]
async fn update_matchmaker_config_sets_both_caps() {
    let deployment = Deployment::start().await;
    let before = deployment.namespace().await;
    assert_ne!((before.lobby_count_max, before.max_players_per_client), (128, 8));
    let (_, body) = deployment.succeed("update-matchmaker-config").await;
    assert_eq!(body, json!({}));
    let after = deployment.namespace().await;
    assert_eq!((after.lobby_count_max, after.max_players_per_client), (128, 8));
}

#[tokio::test]
async fn the_functions_that_issue_tokens_sign_them_for_the_namespace_and_note_them() {
    let deployment = Deployment::start().await;
    let now = shared::base::ambient::Ambient::system().now();
    for binary in ["create-public-token", "create-server-token", "create-development-token"] {
        let namespace = deployment.namespace().await;
        let (_, body) = deployment.succeed(binary).await;
        let claims = deployment.keys.verify(body["token"].as_str().unwrap(), now);
        let credential = match (binary, claims) {
            ("create-public-token", Ok(Claims::Public(credential))) => credential,
            ("create-server-token", Ok(Claims::Server(credential))) => credential,
            ("create-development-token", Ok(Claims::Development(credential, host))) => {
                assert_eq!(host.hostname, "127.0.0.1");
                assert_eq!(host.ports.iter().count(), 1);
                credential
            }
            (_, other) => panic!("{binary}: {other:?}"),
        };
        assert_eq!(&credential.game_id, deployment.game_id(), "{binary}");
        assert_eq!(&credential.namespace_id, deployment.namespace_id(), "{binary}");
        assert_eq!(deployment.namespace().await, namespace, "{binary}");
        let noted = deployment.stack.store().issued_tokens(deployment.game_id()).await.unwrap();
        let noted: Vec<_> = noted.iter().filter(|token| token.token_id == credential.token_id).collect();
        assert_eq!(noted.len(), 1, "{binary}");
        assert_eq!(noted[0].namespace_id.as_ref(), Some(deployment.namespace_id()), "{binary}");
    }
}

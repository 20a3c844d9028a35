//! The receivers of `infra/recipes`, as processes: they verify signatures with the published library, and
//! call interfaces that this test stands in for.

use std::collections::BTreeMap;

use harness::node::is_ready;
use wiremock::matchers::path;

use super::*;
use crate::artefacts::{Program, workspace};

/// The receiver of a recipe in a scene, whose provider is at `api`.
async fn receiver(script: &str, api: &str, secret: &str) -> (Program, String) {
    let variables = [
        ("WEBHOOK_SECRET", secret),
        ("HOST", "127.0.0.1"),
        ("PORT", "0"),
        ("FLY_APP", "games"),
        ("FLY_API_TOKEN", "token"),
        ("FLY_API", api),
        ("KUBERNETES_API", api),
        ("KUBERNETES_TOKEN", "token"),
        ("PATH", &std::env::var("PATH").unwrap()),
    ];
    let variables: BTreeMap<_, _> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let script = workspace().join("infra/recipes").join(script);
    let node = std::path::Path::new("node");
    let mut program = Program::start_at(node, &[script.to_str().unwrap()], &variables);
    let line = program.line_with("listens on").await.unwrap();
    let port = line.rsplit(' ').next().unwrap();
    let url = format!("http://127.0.0.1:{port}/");
    (program, url)
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test]
async fn the_recipe_of_fly_starts_one_machine_and_destroys_it() {
    if !is_ready("the_recipe_of_fly", &workspace().join("infra/recipes")).await {
        return;
    }
    let fly = MockServer::start().await;
    let machines = "/v1/apps/games/machines";
    let created = ResponseTemplate::new(200).set_body_json(json!({ "id": "d8912", "state": "created" }));
    Mock::given(method("POST")).and(path(machines)).respond_with(created).up_to_n_times(1).mount(&fly).await;
    let taken = json!({ "error": "already_exists: unique machine name violation" });
    let taken = ResponseTemplate::new(409).set_body_json(taken);
    Mock::given(method("POST")).and(path(machines)).respond_with(taken).mount(&fly).await;
    let gone = ResponseTemplate::new(200).set_body_json(json!({ "ok": true }));
    Mock::given(method("DELETE")).respond_with(gone).mount(&fly).await;

    let (_program, url) = receiver("fly.mjs", &fly.uri(), SECRET).await;
    let scene = Scene::start(webhook(&url)).await;
    let server = scene.server().await;
    let start_id = server.start_id.as_ref().unwrap().as_str();
    let listed = json!([{ "id": "other", "name": "other" }, { "id": "d8912", "name": start_id }]);
    let listed = ResponseTemplate::new(200).set_body_json(listed);
    Mock::given(method("GET")).and(path(machines)).respond_with(listed).mount(&fly).await;

    // The first answer is lost with its note: the second call finds the machine.
    let link = Losing::calls(scene.stack.stack.store_link(), |call| call.operation == "UpdateItem");
    let store = scene.restricted(&patient_client_over(Arc::new(link)));
    let look = Look { server: server.server.clone(), tries: 0 };
    let (_, error) = scene.function_over(store, None).answer(Scene::message(&look)).await;
    assert!(error.is_some());
    let (_, after) = scene.look().await.unwrap();
    assert_eq!(scene.server().await.handle.as_deref(), Some("d8912"));
    let requests = fly.received_requests().await.unwrap();
    let created: Value = requests[0].body_json().unwrap();
    assert_eq!((&created["name"], &created["region"]), (&json!(start_id), &json!("fra")));
    assert_eq!(created["config"]["image"], "game:7");
    assert_eq!(created["config"]["env"]["MUSTER_START_ID"], start_id);

    scene.stack.clock.advance(after);
    scene.look().await;
    let last = fly.received_requests().await.unwrap().pop().unwrap();
    assert_eq!((last.method.as_str(), last.url.path()), ("DELETE", "/v1/apps/games/machines/d8912"));
    assert!(scene.server().await.ended_at.is_some());
}

#[tokio::test]
async fn the_recipe_of_agones_creates_one_game_server_and_deletes_it() {
    if !is_ready("the_recipe_of_agones", &workspace().join("infra/recipes")).await {
        return;
    }
    let cluster = MockServer::start().await;
    let servers = "/apis/agones.dev/v1/namespaces/default/gameservers";
    let taken = ResponseTemplate::new(409).set_body_json(json!({ "reason": "AlreadyExists" }));
    Mock::given(method("POST")).and(path(servers)).respond_with(taken).mount(&cluster).await;
    Mock::given(method("DELETE")).respond_with(ResponseTemplate::new(404)).mount(&cluster).await;

    let (_program, url) = receiver("agones.mjs", &cluster.uri(), SECRET).await;
    let scene = Scene::start(webhook(&url)).await;
    let (_, after) = scene.look().await.unwrap();
    let server = scene.server().await;
    let start_id = server.start_id.as_ref().unwrap().as_str();
    assert_eq!(server.handle.as_deref(), Some(start_id));
    let created: Value = cluster.received_requests().await.unwrap()[0].body_json().unwrap();
    assert_eq!(created["metadata"]["name"], start_id);
    let environment = created["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(environment.contains(&json!({ "name": "MUSTER_START_ID", "value": start_id })));
    scene.stack.clock.advance(after);
    scene.look().await;
    let last = cluster.received_requests().await.unwrap().pop().unwrap();
    assert_eq!((last.method.as_str(), last.url.path()), ("DELETE", format!("{servers}/{start_id}").as_str()));
    assert!(scene.server().await.ended_at.is_some());
}

#[tokio::test]
async fn a_signature_of_another_secret_is_refused_for_good() {
    if !is_ready("a_signature_of_another_secret", &workspace().join("infra/recipes")).await {
        return;
    }
    let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let (_program, url) = receiver("fly.mjs", "http://127.0.0.1:9", other).await;
    let scene = Scene::start(webhook(&url)).await;
    scene.look().await;
    let failure = scene.server().await.failure.unwrap();
    assert!(failure.starts_with("the webhook answered with status 401"), "{failure}");
    // While the receiver changes its secret, requests are signed with both.
    let both = [SECRET, other].map(|secret| SigningSecret::parse(secret).unwrap()).to_vec();
    let (_program, url) = receiver("agones.mjs", "http://127.0.0.1:9", other).await;
    let scene = Scene::start(StarterSettings::Webhook { url, secrets: both }).await;
    assert_eq!(scene.look().await.map(|(tries, _)| tries), Some(1), "verified, but no cluster answers");
}

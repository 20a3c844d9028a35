//! A version's secrets: where they are, and that nobody is told.

use std::sync::Mutex;

use aws_sdk_dynamodb::config::Credentials;
use serde_json::Map;
use shared::{
    aws::plain_client,
    errors::Error,
    secrets::{Parameters, Secrets, SecretsCache, VersionSecrets, parameters_client},
    settings::Version,
};
use wiremock::{Request, Respond};

use super::*;

const SECRETS: [&str; 2] = ["captcha-secret", "header-secret"];

fn config(url: &str) -> Value {
    let modes = json!({ "arena": mode(Some(url)) });
    json!({ "game_modes": modes, "captcha": captcha("turnstile", 1, Duration::from_secs(60)) })
}

#[tokio::test]
async fn a_version_made_over_http_keeps_its_secrets_apart_and_no_answer_holds_them() {
    let stack = TestStack::start().await;
    let game = stack.make_game("secretive", json!({ "arena": { "regions": ["fra"] } }), 10, 10).await;
    let cloud = Some(game.created.cloud_token.reveal());
    let base = format!("/cloud/games/{}", game.game_id());
    let body = |url: &str| json!({ "display_name": "2", "config": config(url) }).to_string();
    let mut answers = Vec::new();
    let mut ask = async |method: Method, path: &str, body: String| {
        let answer = stack.call(method, &format!("{base}{path}"), cloud, body).await;
        answers.push(answer.clone());
        answer
    };
    let valid = ask(Method::POST, "/versions/validate", body("https://verify.example/")).await;
    assert_eq!(valid.body, json!({ "errors": [] }));
    ask(Method::POST, "/versions/validate", body("https://10.0.0.1/")).await.expect_ok();
    ask(Method::POST, "/versions", body("https://10.0.0.1/")).await;
    let broken = body("https://verify.example/").replace("\"site_key\"", "\"site_kei\"");
    assert_eq!(ask(Method::POST, "/versions", broken).await.refusal(), (400, "API_BAD_BODY"));
    let made = ask(Method::POST, "/versions", body("https://verify.example/")).await.expect_ok();
    let version_id = made.body["version_id"].as_str().unwrap().to_owned();
    let version = ask(Method::GET, &format!("/versions/{version_id}"), String::new()).await.expect_ok();
    let namespace = format!("/namespaces/{}", game.namespace_id());
    let run = json!({ "version_id": version_id }).to_string();
    ask(Method::PUT, &format!("{namespace}/version"), run).await.expect_ok();
    ask(Method::GET, &format!("{namespace}/version-history"), String::new()).await.expect_ok();
    ask(Method::GET, &namespace, String::new()).await.expect_ok();
    ask(Method::GET, "", String::new()).await.expect_ok();
    answers.push(game.find(&stack, find(None)).await);
    for answer in &answers {
        assert!(SECRETS.iter().all(|secret| !answer.body.to_string().contains(secret)), "{}", answer.body);
    }

    let shown = &version.body["version"]["config"];
    assert_eq!(shown["captcha"]["turnstile"], json!({ "site_key": "site-key", "secret_key": null }));
    let verification = &shown["game_modes"]["arena"]["actions"]["join"]["verification"];
    assert_eq!(*verification, json!({ "url": "https://verify.example/", "headers": { "x-secret": null } }));
    assert_eq!(version.body["version"].as_object().unwrap().len(), 4, "no reference either");

    // What is shown is no version: made of it as it is, one would ask the backend without the header.
    let mut shown = shown.clone();
    shown.as_object_mut().unwrap().remove("captcha");
    let again = json!({ "display_name": "3", "config": shown }).to_string();
    let missing = ["find", "join", "create"].map(
        |kind| json!({ "path": ["game_modes", "arena", "actions", kind, "verification", "headers", "x-secret", "missing"] }),
    );
    let errors = stack.call(Method::POST, &format!("{base}/versions/validate"), cloud, again).await.body;
    assert_eq!(errors, json!({ "errors": missing }));

    // In the tables, too, they are where they belong alone.
    let tables = stack.store().tables();
    for (table, may) in [(&tables.catalog, false), (&tables.ledger, false), (&tables.secrets, true)] {
        let scan = stack.store().client().scan().table_name(table).send().await.unwrap();
        let text = format!("{:?}", scan.items());
        assert!(SECRETS.iter().all(|secret| text.contains(secret) == may), "{table}");
    }
}

/// Systems Manager, as far as Muster asks it.
#[derive(Clone, Default)]
struct SystemsManager {
    parameters: Arc<Mutex<Map<String, Value>>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Respond for SystemsManager {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let target = request.headers["x-amz-target"].to_str().unwrap().to_owned();
        let body: Value = request.body_json().unwrap();
        let mut parameters = self.parameters.lock().unwrap();
        self.calls.lock().unwrap().push(target.clone());
        let answer = match target.as_str() {
            "AmazonSSM.PutParameter" => {
                assert_eq!(body["Type"], "SecureString");
                assert!(body["Value"].as_str().unwrap().len() <= 4_096);
                parameters.insert(body["Name"].as_str().unwrap().to_owned(), body["Value"].clone());
                json!({ "Version": 1, "Tier": "Standard" })
            }
            "AmazonSSM.GetParameters" => {
                assert_eq!(body["WithDecryption"], true);
                let names = body["Names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let (found, missing): (Vec<_>, Vec<_>) =
                    names.partition(|name| parameters.contains_key(*name));
                let found: Vec<_> = found
                    .iter()
                    .map(|name| json!({ "Name": name, "Type": "SecureString", "Value": parameters[*name] }))
                    .collect();
                json!({ "Parameters": found, "InvalidParameters": missing })
            }
            other => panic!("{other} is not allowed by the template"),
        };
        ResponseTemplate::new(200)
            .set_body_json(answer)
            .insert_header("content-type", "application/x-amz-json-1.1")
    }
}

#[tokio::test]
async fn in_aws_they_are_parameters_read_with_one_call_and_kept_for_five_minutes() {
    let (server, manager) = (MockServer::start().await, SystemsManager::default());
    Mock::given(method("POST")).respond_with(manager.clone()).mount(&server).await;
    let credentials = Credentials::new("a", "b", None, None, "test");
    let endpoint = Some(server.uri());
    let connect = || parameters_client("us-east-1".to_owned(), credentials, endpoint, plain_client());
    let secrets = Secrets::Parameters(Parameters::new("/muster/a-stack/versions".to_owned(), connect));

    let stack = TestStack::start().await;
    let game = stack.make_game("parameters", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    let mut modes = config("https://verify.example/");
    // More than one parameter holds.
    let long: Map<_, _> = (0..6).map(|n| (format!("x-{n}"), json!("y".repeat(1_000)))).collect();
    modes["game_modes"]["arena"]["actions"]["join"]["verification"]["headers"] = long.into();
    let config = serde_json::from_value(modes).unwrap();
    let expected = VersionSecrets::of(&config);
    let (store, ambient) = (stack.store(), stack.ambient());
    let version =
        add_version(store, &secrets, &ambient, game.game_id(), "2".to_owned(), config).await.unwrap();
    let names: Vec<_> = manager.parameters.lock().unwrap().keys().cloned().collect();
    let path = format!("/muster/a-stack/versions/{}", version.version_id);
    assert_eq!(names, [format!("{path}/0"), format!("{path}/1")]);

    let stored: Version = store.version(game.game_id(), &version.version_id).await.unwrap().unwrap();
    assert_eq!(stored.secrets, version.secrets);
    assert_eq!(VersionSecrets::of(&stored.config), VersionSecrets::default());
    let cache = SecretsCache::new(secrets, ambient);
    for span in [0, 299] {
        stack.clock.advance(Duration::from_secs(span));
        assert_eq!(*cache.of(&stored).await.unwrap(), expected);
    }
    assert_eq!(manager.calls.lock().unwrap().len(), 3, "two writes and one read");
    stack.clock.advance(Duration::from_secs(1));
    assert_eq!(*cache.of(&stored).await.unwrap(), expected);
    assert_eq!(manager.calls.lock().unwrap().len(), 4, "read again after five minutes");

    manager.parameters.lock().unwrap().remove(&names[0]);
    stack.clock.advance(Duration::from_secs(300));
    assert!(matches!(cache.of(&stored).await, Err(Error::Bug(_))), "one is gone");
    server.reset().await;
    let refused = json!({ "__type": "ThrottlingException", "message": "slow down" });
    answering(&server, "/", ResponseTemplate::new(400).set_body_json(refused)).await;
    let time_passes = async {
        while server.received_requests().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        stack.clock.advance(Duration::from_secs(3));
    };
    let (read, ()) = tokio::join!(cache.of(&stored), time_passes);
    assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
}

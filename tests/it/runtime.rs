//! The function binaries as Lambda runs them: a process each, fed over the runtime API with events as API Gateway sends
//! them, in the environment that the template gives them.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeMap, fs};

use muster_tests::TestStack;
use serde_json::{Value, json};
use shared::{
    ambient::Ambient,
    auth::{GameRight, NamespaceRight},
    provision::issue_cloud_token,
    settings::{CdnAuthType, Namespace},
    tokens::{Claims, CloudToken, CredentialKind, TokenKeys},
};

use crate::artefacts::{Ended, Program, functions, workspace};

mod service;

use service::{Instance, Outcome, lambda_environment};

/// As CloudFormation generates it: 64 letters and digits.
const SIGNING_KEY: &str = "9sVh3qT0cZ7mXb2LwKe8RjYp4NdGfU6aQx1WtCo5iHuEzMvBnPkSrDyAlIgJO0F2";

/// A stack's tables, for functions that run as processes beside it.
struct Deployment {
    stack: TestStack,
    keys: TokenKeys,
    public: String,
    cloud: String,
}

impl Deployment {
    async fn start() -> Self {
        let stack = TestStack::start().await;
        let (demo, ambient) = (stack.demo(), stack.ambient());
        let keys = TokenKeys::new(SIGNING_KEY.as_bytes(), None).unwrap();
        let public = CredentialKind::Public;
        let public = keys.issue_credential(public, &demo.game_id, &demo.namespace_id, &ambient);
        let cloud = issue_cloud_token(stack.store(), &ambient, &demo.game_id).await;
        let cloud = cloud.unwrap().reveal().to_owned();
        Self { stack, keys, public, cloud }
    }

    /// What the template sets for the function, and where this deployment's tables are.
    fn environment(&self, binary: &str) -> BTreeMap<String, String> {
        let mut environment = environment(binary);
        let endpoint = self.stack.stack.store_endpoint().to_owned();
        environment.insert("AWS_ENDPOINT_URL_DYNAMODB".to_owned(), endpoint);
        environment
    }

    async fn instance(&self, binary: &str) -> Instance {
        Instance::start(binary, &self.environment(binary)).await
    }

    /// The event of a file, about the demo's game and with a token that is good for it.
    fn event(&self, file: &str) -> Value {
        let path = workspace().join("tests/events").join(file).with_extension("json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let demo = self.stack.demo();
        let token = if text.contains("/cloud/") { &self.cloud } else { &self.public };
        let text = text
            .replace("TOKEN", token)
            .replace("NAMESPACE_ID", demo.namespace_id.as_str())
            .replace("GAME_ID", demo.game_id.as_str())
            .replace("VERSION_ID", demo.version_ids[1].as_str());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The body of a fresh instance's answer to the event of a file, of the same name or not.
    async fn answer(&self, binary: &str, file: &str) -> (u64, Value) {
        let (mut instance, event) = (self.instance(binary).await, self.event(file));
        status_and_body(&event, &instance.invoke(&event.to_string()).await.answer())
    }

    async fn namespace(&self) -> Namespace {
        let demo = self.stack.demo();
        let namespace = self.stack.store().namespace(&demo.game_id, &demo.namespace_id);
        namespace.await.unwrap().unwrap()
    }

    async fn right(&self) -> NamespaceRight {
        let demo = self.stack.demo();
        let game = GameRight::of_operator(demo.game_id.clone());
        let right = game.on_namespace(&demo.namespace_id, self.stack.store());
        right.await.unwrap()
    }
}

fn environment(binary: &str) -> BTreeMap<String, String> {
    let mut functions = functions(SIGNING_KEY).into_iter();
    let function = functions.find(|function| function.binary == binary);
    function.unwrap_or_else(|| panic!("the template has no {binary}")).environment
}

/// Status and body of a response, which must be one that the gateway sends as it is, under the request's own identifier.
fn status_and_body(event: &Value, response: &Value) -> (u64, Value) {
    let headers = &response["headers"];
    let request_id = &event["requestContext"]["requestId"];
    assert!(request_id.is_string(), "{event}");
    assert_eq!(&headers["x-request-id"], request_id, "{response}");
    assert_eq!(&headers["rvt-ray-id"], request_id, "{response}");
    assert_eq!(headers["content-type"], "application/json", "{response}");
    assert_eq!(response["isBase64Encoded"], false, "{response}");
    let body = response["body"].as_str().expect("a body");
    let body = serde_json::from_str(body).expect("a JSON body");
    (response["statusCode"].as_u64().expect("a status"), body)
}

#[tokio::test]
async fn every_function_of_the_template_answers_its_example_event() {
    let deployment = Deployment::start().await;
    for function in functions(SIGNING_KEY) {
        let (status, body) = deployment.answer(&function.binary, &function.binary).await;
        assert_eq!(status, 200, "{}: {body}", function.binary);
        assert!(body.is_object(), "{}: {body}", function.binary);
    }
}

#[tokio::test]
async fn find_lobby_gives_a_seat_in_a_lobby_of_the_tables() {
    let deployment = Deployment::start().await;
    let (status, body) = deployment.answer("find-lobby", "find-lobby").await;
    assert_eq!(status, 200, "{body}");
    let token = body["player"]["token"].as_str().unwrap();
    let Ok(Claims::Player(seat)) = deployment.keys.verify(token, Ambient::system().now()) else {
        panic!("the player token is signed with another key");
    };
    assert_eq!(body["lobby"]["lobby_id"], seat.lobby_id.as_str());
    let lobby = deployment.stack.store().lobby(&seat.lobby_id).await;
    let lobby = lobby.unwrap().unwrap();
    assert!(lobby.reserved.contains_key(&seat.seat_id));
    assert_eq!((lobby.max_players, lobby.tags["map"].as_str()), (8, "harbour"));
    assert_eq!(body["lobby"]["region"]["region_id"], "fra");
    assert_eq!(body["ports"], body["lobby"]["ports"]);
}

#[tokio::test]
async fn get_bootstrap_tells_what_the_template_sets() {
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
    let users = deployment.stack.store().cdn_users(&right).await;
    assert_eq!(users.unwrap(), ["tester"]);
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
async fn a_base64_body_is_decoded() {
    let deployment = Deployment::start().await;
    let (status, body) = deployment.answer("find-lobby", "shapes/base64-body").await;
    assert_eq!(status, 200, "{body}");
    let lobbies = deployment.stack.all_lobbies(&deployment.stack.demo().namespace_id);
    let lobbies = lobbies.await;
    assert_eq!(lobbies.len(), 1);
    assert_eq!(lobbies[0].pool.game_mode.as_str(), "duel");
}

#[tokio::test]
async fn a_stage_in_the_path_does_not_matter() {
    let deployment = Deployment::start().await;
    let answer = deployment.answer("set-cdn-auth-type", "shapes/stage-in-path").await;
    assert_eq!(answer, (200, json!({})));
    assert_eq!(deployment.namespace().await.cdn_auth_type, CdnAuthType::Basic);
}

#[tokio::test]
async fn a_missing_body_is_the_empty_object() {
    let deployment = Deployment::start().await;
    let (status, body) = deployment.answer("validate-matchmaker-config", "shapes/missing-body").await;
    assert_eq!((status, &body["code"]), (400, &json!("API_BAD_BODY")));
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("lobby_count_max"), "{message}");
}

#[tokio::test]
async fn an_event_that_is_not_of_the_gateway_fails_alone() {
    let deployment = Deployment::start().await;
    for function in functions(SIGNING_KEY) {
        let mut instance = deployment.instance(&function.binary).await;
        for foreign in [json!({ "Records": [{ "eventSource": "aws:sqs" }] }), json!([]), json!("x")] {
            match instance.invoke(&foreign.to_string()).await {
                Outcome::Failed(error) => assert!(error["errorMessage"].is_string(), "{error}"),
                Outcome::Answered(response) => panic!("{}: {response}", function.binary),
            }
        }
        let event = deployment.event(&function.binary);
        let response = instance.invoke(&event.to_string()).await.answer();
        assert_eq!(status_and_body(&event, &response).0, 200, "{}", function.binary);
    }
}

#[tokio::test]
async fn functions_log_each_request_as_json_and_never_a_secret() {
    let deployment = Deployment::start().await;
    for function in functions(SIGNING_KEY) {
        let binary = &function.binary;
        let mut instance = deployment.instance(binary).await;
        let event = deployment.event(binary);
        let answered = instance.invoke(&event.to_string()).await.answer();
        let mut secrets = vec![
            deployment.public.clone(),
            deployment.cloud.clone(),
            SIGNING_KEY.to_owned(),
            "$2b$".to_owned(),
        ];
        let (_, body) = status_and_body(&event, &answered);
        secrets.extend(body["player"]["token"].as_str().map(str::to_owned));

        // Refusals, whose reasons are logged, of what holds the same secrets.
        let mut broken = event.clone();
        let forged = format!("Bearer {}x", deployment.public);
        broken["headers"]["authorization"] = forged.into();
        let _refused = instance.invoke(&broken.to_string()).await.answer();
        let mut malformed = event.clone();
        malformed["body"] =
            json!({ "game_modes": secrets, "auth_type": secrets, "user": secrets }).to_string().into();
        let _refused = instance.invoke(&malformed.to_string()).await.answer();
        malformed["body"] = format!("{{\"password\": \"{}", secrets.join(" ")).into();
        let _refused = instance.invoke(&malformed.to_string()).await.answer();
        let foreign = json!({ "headers": event["headers"], "body": secrets });
        let _failed = instance.invoke(&foreign.to_string()).await;

        let Ended { stdout, stderr, .. } = instance.kill().await;
        for secret in &secrets {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{binary} logs a secret");
        }
        assert_eq!(stderr, "", "{binary}");
        let lines: Vec<Value> = stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{binary}: {line}")))
            .collect();
        for line in &lines {
            assert!(is_time(&line["timestamp"]), "{binary}: {line}");
            let level = line["level"].as_str().unwrap_or_default();
            assert!(["ERROR", "WARN", "INFO"].contains(&level), "{binary}: {line}");
        }
        let request_id = &event["requestContext"]["requestId"];
        let of_request = |line: &&Value| &line["span"]["request.id"] == request_id;
        let statuses: Vec<u64> =
            lines.iter().filter(of_request).filter_map(|line| line["status"].as_u64()).collect();
        assert_eq!(statuses.len(), 4, "{binary}: one line for each request: {stdout}");
        assert_eq!(statuses[0], 200, "{binary}");
    }
}

#[tokio::test]
async fn the_most_talkative_log_holds_no_secret_either() {
    let deployment = Deployment::start().await;
    for function in functions(SIGNING_KEY) {
        let binary = &function.binary;
        let mut environment = deployment.environment(binary);
        environment.insert("MUSTER_LOG".to_owned(), "trace".to_owned());
        let mut instance = Instance::start(binary, &environment).await;
        let event = deployment.event(binary);
        let answered = instance.invoke(&event.to_string()).await.answer();
        let (status, body) = status_and_body(&event, &answered);
        assert_eq!(status, 200, "{binary}");
        let token = body["player"]["token"].as_str().map(str::to_owned);
        let digest = CloudToken::parse(&deployment.cloud).unwrap().digest();
        let known = [deployment.public.clone(), deployment.cloud.clone(), digest, SIGNING_KEY.to_owned()];
        let Ended { stdout, stderr, .. } = instance.kill().await;
        for secret in known.into_iter().chain(["$2b$".to_owned()]).chain(token) {
            assert!(!stdout.contains(&secret) && !stderr.contains(&secret), "{binary} logs a secret");
        }
    }
}

/// Whether Lambda takes it for a timestamp: RFC 3339 in UTC, to the millisecond at least.
fn is_time(value: &Value) -> bool {
    let form = regex_lite::Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z$").unwrap();
    value.as_str().is_some_and(|text| form.is_match(text))
}

#[tokio::test]
async fn a_function_without_usable_variables_ends_and_names_the_variable() {
    let unusable = [
        ("find-lobby", "MUSTER_SIGNING_KEY", None),
        ("find-lobby", "MUSTER_SIGNING_KEY", Some("too-short-to-sign")),
        ("find-lobby", "MUSTER_SIGNING_KEY_PREVIOUS", Some("too-short-to-sign")),
        ("find-lobby", "AWS_ENDPOINT_URL_DYNAMODB", Some("https://key@example.com")),
        ("set-cdn-auth-type", "AWS_REGION", None),
        ("update-namespace-version", "AWS_SECRET_ACCESS_KEY", None),
        ("validate-matchmaker-config", "MUSTER_SIGNING_KEY", None),
        ("update-cdn-auth-user", "MUSTER_BCRYPT_MAX_COST", Some("seventeen")),
        ("get-bootstrap", "MUSTER_ACCESS", Some("somebody")),
    ];
    let nowhere = "127.0.0.1:9".parse().unwrap();
    for (binary, variable, value) in unusable {
        let mut environment = environment(binary);
        environment.extend(lambda_environment(binary, nowhere));
        let others = [
            ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "not-a-real-secret"),
            ("MUSTER_SIGNING_KEY", SIGNING_KEY),
        ];
        environment.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
        match value {
            Some(value) => environment.insert(variable.to_owned(), value.to_owned()),
            None => environment.remove(variable),
        };
        let Ended { status, stdout, stderr } = Program::run(binary, &[], &environment).await;
        let log = stdout + &stderr;
        assert!(!status.success(), "{binary} runs without {variable}");
        let name = regex_lite::Regex::new(&format!(r"\b{variable}\b")).unwrap();
        assert!(log.lines().any(|line| name.is_match(line)), "{binary} does not name {variable}: {log}");
        for secret in value.into_iter().chain([SIGNING_KEY, "not-a-real-secret"]) {
            assert!(!log.contains(secret), "{binary} logs {variable}'s value: {log}");
        }
    }
}

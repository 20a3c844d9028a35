//! The function binaries as Lambda runs them: a process each, fed over the runtime API with events as API
//! Gateway sends them, in the environment that the template gives them.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeSet, fs, time::Duration};

use harness::{
    declared::Function,
    runtime_api::{self, Outcome},
    tls::behind_tls,
};
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    cloud::provision::add_version,
    models::{namespace::CdnAuthType, token::CloudToken},
};
use wiremock::{MockServer, ResponseTemplate};

use crate::{
    artefacts::{Ended, Program, TestFolder, functions},
    screening,
};

mod cloud;
mod deployment;
mod lobbies;
mod service;

pub(crate) use deployment::environment;
use deployment::{Deployment, Example, SIGNING_KEY};
pub(crate) use service::Instance;

/// Status and body of a response, which must be one that the gateway sends as it is, under the request's own
/// identifier.
pub(crate) fn status_and_body(event: &Value, response: &Value) -> (u64, Value) {
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

/// The functions that the API calls.
fn operations() -> Vec<Function> {
    functions(SIGNING_KEY).into_iter().filter(|function| function.has_route).collect()
}

/// The tokens of any kind in a response.
fn tokens_in(body: &Value) -> Vec<String> {
    let lobbies = body["lobbies"].as_array().into_iter().flatten();
    let tokens = [&body["token"], &body["player"]["token"]].into_iter();
    let tokens = tokens.chain(lobbies.map(|lobby| &lobby["lobby_token"]));
    tokens.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_function_of_the_template_answers_its_example_event() {
    let deployment = Deployment::start().await;
    for function in operations() {
        let (status, body) = deployment.answer(&function.binary, &function.binary).await;
        assert_eq!(status, 200, "{}: {body}", function.binary);
        assert!(body.is_object(), "{}: {body}", function.binary);
    }
}

#[tokio::test]
async fn a_function_speaks_tls_with_those_that_its_authorities_vouch_for() {
    let (deployment, folder) = (Deployment::start().await, TestFolder::new());
    let (endpoint, certificate) = behind_tls(deployment.stack.stack.store_link()).await;
    let bundle = folder.path("authorities.pem");
    fs::write(&bundle, certificate).unwrap();
    let mut environment = deployment.environment("find-lobby");
    environment.extend(
        [
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let Example { event, .. } = deployment.example("find-lobby").await;
    // Without the bundle only AWS's own authorities count, and the tables' is none.
    let mut stranger = Instance::start("find-lobby", &environment).await;
    let refused = stranger.invoke(&event.to_string()).await.answer();
    let (status, body) = status_and_body(&event, &refused);
    assert_eq!((status, &body["code"]), (503, &json!("API_UNAVAILABLE")), "{body}");
    environment.insert("AWS_CA_BUNDLE".to_owned(), bundle);
    let mut instance = Instance::start("find-lobby", &environment).await;
    let found = instance.invoke(&event.to_string()).await.answer();
    let (status, body) = status_and_body(&event, &found);
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn a_base64_body_is_decoded() {
    let deployment = Deployment::start().await;
    let (status, body) = deployment.answer("find-lobby", "shapes/base64-body").await;
    assert_eq!(status, 200, "{body}");
    let found = body["lobby"]["lobby_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(deployment.lobby(&found).await.pool.game_mode.as_str(), "duel");
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
async fn a_function_links_the_code_of_an_error_on_the_page_of_its_environment() {
    let deployment = Deployment::start().await;
    let Example { event, .. } = deployment.example("shapes/missing-body").await;
    for (page, link) in [("", None), ("https://a.example/b", Some("https://a.example/b#API_BAD_BODY"))] {
        let mut environment = deployment.environment("validate-matchmaker-config");
        let before = environment.insert("MUSTER_DOCUMENTATION_URL".to_owned(), page.to_owned());
        assert!(before.is_some(), "the template does not set it");
        let mut instance = Instance::start("validate-matchmaker-config", &environment).await;
        let refused = instance.invoke(&event.to_string()).await.answer();
        let (status, body) = status_and_body(&event, &refused);
        assert_eq!((status, &body["code"]), (400, &json!("API_BAD_BODY")));
        assert_eq!(body.get("documentation").and_then(Value::as_str), link, "{body}");
    }
}

#[tokio::test]
async fn an_event_that_is_not_of_the_gateway_fails_alone() {
    let deployment = Deployment::start().await;
    for function in operations() {
        let mut instance = deployment.instance(&function.binary).await;
        for foreign in [json!({ "Records": [{ "eventSource": "aws:sqs" }] }), json!([]), json!("x")] {
            match instance.invoke(&foreign.to_string()).await {
                Outcome::Failed(error) => assert!(error["errorMessage"].is_string(), "{error}"),
                Outcome::Answered(response) => panic!("{}: {response}", function.binary),
            }
        }
        let event = deployment.example(&function.binary).await.event;
        let response = instance.invoke(&event.to_string()).await.answer();
        assert_eq!(status_and_body(&event, &response).0, 200, "{}", function.binary);
    }
}

#[tokio::test]
async fn functions_log_each_request_as_json_and_never_a_secret() {
    let deployment = Deployment::start().await;
    for function in operations() {
        let binary = &function.binary;
        let mut instance = deployment.instance(binary).await;
        let Example { event, mut secrets, .. } = deployment.example(binary).await;
        let answered = instance.invoke(&event.to_string()).await.answer();
        let (_, body) = status_and_body(&event, &answered);
        secrets.extend([SIGNING_KEY.to_owned(), "$2b$".to_owned()]);
        secrets.extend(tokens_in(&body));

        // Refusals, whose reasons are logged, of what holds the same secrets.
        let mut broken = event.clone();
        let forged = format!("Bearer {}x", deployment.public);
        broken["headers"]["authorization"] = forged.into();
        let refused = instance.invoke(&broken.to_string()).await.answer();
        let mut malformed = event.clone();
        let fields = json!({
            "game_modes": secrets, "auth_type": secrets, "user": secrets, "player_token": secrets,
            "game_mode": secrets, "lobby_id": secrets, "server_id": secrets, "is_closed": secrets,
            "display_name": secrets, "lobby_count_max": secrets, "hostname": secrets, "region_id": secrets,
        });
        malformed["body"] = fields.to_string().into();
        let refused_too = instance.invoke(&malformed.to_string()).await.answer();
        malformed["body"] = format!("{{\"password\": \"{}", secrets.join(" ")).into();
        let again = instance.invoke(&malformed.to_string()).await.answer();
        // Operations that read no body, or any, succeed again.
        for response in [refused, refused_too, again] {
            secrets.extend(tokens_in(&status_and_body(&event, &response).1));
        }
        let foreign = json!({ "headers": event["headers"], "body": secrets });
        let _failed = instance.invoke(&foreign.to_string()).await;

        let Ended { stdout, stderr, .. } = instance.kill().await;
        for secret in &secrets {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{binary} logs a secret");
        }
        assert_eq!(stderr, "", "{binary}");
        let lines = stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{binary}: {line}")));
        let (metrics, lines): (Vec<Value>, Vec<Value>) =
            lines.partition(|line: &Value| line["_aws"].is_object());
        let cold: u64 = metrics.iter().filter_map(|line| line["ColdStart"].as_u64()).sum();
        assert_eq!(cold, 1, "{binary}: {metrics:?}");
        for line in &metrics {
            assert_eq!(line["operation"], **binary, "{line}");
            for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
                assert_eq!(directive["Namespace"], "Muster/a-stack", "{line}");
                for metric in directive["Metrics"].as_array().unwrap() {
                    assert!(line[metric["Name"].as_str().unwrap()].is_u64(), "{line}");
                    let has_total =
                        ["AuthRefused", "OperationFailed"].contains(&metric["Name"].as_str().unwrap());
                    let dimensions =
                        if has_total { json!([["operation"], []]) } else { json!([["operation"]]) };
                    assert_eq!(directive["Dimensions"], dimensions, "{line}");
                }
            }
        }
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
    let digest = CloudToken::parse(&deployment.cloud).unwrap().digest();
    for function in operations() {
        let binary = &function.binary;
        let mut environment = deployment.environment(binary);
        environment.insert("MUSTER_LOG".to_owned(), "trace".to_owned());
        let mut instance = Instance::start(binary, &environment).await;
        let Example { event, mut secrets, .. } = deployment.example(binary).await;
        let answered = instance.invoke(&event.to_string()).await.answer();
        let (status, body) = status_and_body(&event, &answered);
        assert_eq!(status, 200, "{binary}");
        secrets.extend([digest.clone(), SIGNING_KEY.to_owned(), "$2b$".to_owned()]);
        secrets.extend(tokens_in(&body));
        let Ended { stdout, stderr, .. } = instance.kill().await;
        for secret in &secrets {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{binary} logs a secret");
        }
    }
}

#[tokio::test]
async fn the_answers_that_hold_tokens_are_known_to_the_tests_of_the_log() {
    let deployment = Deployment::start().await;
    let form = regex_lite::Regex::new(r"[a-z_]+_ey[\w-]+\.[\w-]+\.[\w-]+|cloud_[\w-]{43}").unwrap();
    let mut issuing = Vec::new();
    for function in operations() {
        let (_, body) = deployment.answer(&function.binary, &function.binary).await;
        let tokens: BTreeSet<_> = tokens_in(&body).into_iter().collect();
        let text = body.to_string();
        let found: BTreeSet<_> = form.find_iter(&text).map(|token| token.as_str().to_owned()).collect();
        assert_eq!(found, tokens, "{}", function.binary);
        if !tokens.is_empty() {
            issuing.push(function.binary);
        }
    }
    issuing.sort();
    let expected = [
        "create-cloud-token",
        "create-development-token",
        "create-lobby",
        "create-public-token",
        "create-server-token",
        "find-lobby",
        "heartbeat-server",
        "join-lobby",
        "rejoin-player",
    ];
    assert_eq!(issuing, expected);
}

#[tokio::test]
async fn a_function_calls_captcha_provider_and_backend_and_logs_no_secret_of_theirs() {
    let (deployment, server) = (Deployment::start().await, MockServer::start().await);
    let verdict = ResponseTemplate::new(200).set_body_json(json!({ "success": true }));
    screening::answering(&server, "/turnstile", verdict).await;
    screening::answering(&server, "/may", ResponseTemplate::new(204)).await;
    let mut environment = deployment.environment("find-lobby");
    for (name, value) in [
        ("MUSTER_TURNSTILE_URL", format!("{}/turnstile", server.uri())),
        ("MUSTER_REACH", "anywhere".to_owned()),
        ("MUSTER_LOG", "trace".to_owned()),
    ] {
        environment.insert(name.to_owned(), value);
    }
    let Example { mut event, .. } = deployment.example("find-lobby").await;
    let modes = json!({ "arena": screening::mode(Some(&format!("{}/may", server.uri()))) });
    let captcha = screening::captcha("turnstile", 1, Duration::from_secs(60));
    let config = serde_json::from_value(json!({ "game_modes": modes, "captcha": captcha })).unwrap();
    let (stack, ambient) = (&deployment.stack, Ambient::system());
    let (store, game_id) = (stack.store(), deployment.game_id());
    let version = add_version(store, &ambient, game_id, "guarded".to_owned(), config).await.unwrap();
    let right = stack.right(deployment.namespace_id()).await;
    store.set_version(&right, &version.version_id, ambient.now()).await.unwrap();

    let mut instance = Instance::start("find-lobby", &environment).await;
    let refused = instance.invoke(&event.to_string()).await.answer();
    let (status, body) = status_and_body(&event, &refused);
    assert_eq!((status, &body["code"]), (403, &json!("CAPTCHA_CAPTCHA_REQUIRED")));
    let mut request: Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
    request["captcha"] = json!({ "turnstile": { "client_response": "a-captcha-answer" } });
    request["verification_data"] = json!({ "ticket": "a-ticket" });
    event["body"] = request.to_string().into();
    let found = instance.invoke(&event.to_string()).await.answer();
    let (status, body) = status_and_body(&event, &found);
    assert_eq!(status, 200, "{body}");
    let requests = server.received_requests().await.unwrap();
    let paths: Vec<_> = requests.iter().map(|request| request.url.path()).collect();
    assert_eq!(paths, ["/turnstile", "/may"]);
    let question: Value = requests[1].body_json().unwrap();
    assert_eq!(question["client"]["address"], event["requestContext"]["http"]["sourceIp"]);
    let Ended { stdout, stderr, .. } = instance.kill().await;
    for secret in ["captcha-secret", "header-secret", "a-captcha-answer", "a-ticket"] {
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "{secret} is logged");
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
        ("find-lobby", "AWS_CA_BUNDLE", Some("a-file-that-is-nowhere")),
        ("find-lobby", "AWS_ENDPOINT_URL_DYNAMODB", Some("https://key:word@example.com")),
        ("set-cdn-auth-type", "AWS_REGION", None),
        ("update-namespace-version", "AWS_SECRET_ACCESS_KEY", None),
        ("validate-matchmaker-config", "MUSTER_SIGNING_KEY", None),
        ("update-cdn-auth-user", "MUSTER_BCRYPT_MAX_COST", Some("seventeen")),
        ("get-bootstrap", "MUSTER_ACCESS", Some("somebody")),
        ("join-lobby", "MUSTER_SIGNING_KEY", None),
        ("create-lobby", "MUSTER_SIGNING_KEY_PREVIOUS", Some("too-short-to-sign")),
        ("connect-player", "MUSTER_SIGNING_KEY", Some("too-short-to-sign")),
        ("heartbeat-server", "AWS_REGION", None),
        ("list-lobbies", "AWS_ACCESS_KEY_ID", None),
        ("create-server-token", "MUSTER_SIGNING_KEY", None),
        ("create-version", "AWS_ENDPOINT_URL_DYNAMODB", Some("ftp://key@example.com")),
        ("create-lobby", "MUSTER_REACH", Some("everywhere")),
    ];
    let nowhere = "127.0.0.1:9".parse().unwrap();
    for (binary, variable, value) in unusable {
        let mut environment = environment(binary);
        environment.extend(runtime_api::environment(binary, nowhere));
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

//! Path identifiers that can name nothing.

use harness::{Answer, TestStack};
use http::Method;
use serde_json::json;

use super::{
    operation::{OPERATIONS, Operation, send},
    scene::Scene,
};

/// The identifiers that paths carry.
const PARAMETERS: [&str; 4] = ["{game_id}", "{namespace_id}", "{version_id}", "{lobby_id}"];

/// Path segments that decode to no identifier.
fn malformed_segments() -> Vec<String> {
    let mut segments: Vec<_> = [
        "%20",
        "a%20b",
        "a+b",
        "a.b",
        ".",
        "..",
        "%2e%2e",
        "a:b",
        "a%23b",
        "a%3Fb",
        "a%25",
        "%252F",
        "a%5Cb",
        "a%00b",
        "a%0Ab",
        "a%7Fb",
        "a%22b",
        "%7Bgame_id%7D",
        "a%5Bb",
        "%C3%A4",
        "%E2%82%AC",
        "%F0%9F%8E%B2",
        "%EF%BC%A1",
        "GAME%23a",
    ]
    .map(ToOwned::to_owned)
    .into();
    segments.extend(["x".repeat(65), "x".repeat(2_000)]);
    segments
}

/// The operations whose paths carry identifiers.
fn operations() -> impl Iterator<Item = &'static Operation> {
    Operation::guarded().filter(|operation| operation.path.contains('{'))
}

/// The operation with `segment` in the place of each identifier of its path in turn, after that identifier's
/// name.
async fn calls(
    scene: &Scene<'_>,
    operation: &Operation,
    token: Option<&str>,
    segment: &str,
) -> Vec<(&'static str, Answer)> {
    let mut answers = Vec::new();
    for parameter in PARAMETERS.into_iter().filter(|parameter| operation.path.contains(parameter)) {
        let path = scene.path(&operation.path.replace(parameter, segment));
        let body = operation.valid_body(scene);
        answers.push((parameter, scene.stack.call(operation.method.clone(), &path, token, body).await));
    }
    assert!(!answers.is_empty(), "{operation}");
    answers
}

#[tokio::test]
async fn a_malformed_identifier_names_nothing_with_or_without_a_token() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in operations() {
        let mut tokens: Vec<_> = operation.kinds().map(|kind| Some(scene.token(kind))).collect();
        tokens.push(None);
        for segment in malformed_segments() {
            for token in &tokens {
                for (parameter, answer) in calls(&scene, operation, *token, &segment).await {
                    let at = format!("{operation} {parameter} {segment:.9}: {}", answer.body);
                    assert_eq!(answer.refusal(), (404, "API_NOT_FOUND"), "{at}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_identifier_is_read_percent_decoded() {
    let stack = TestStack::start().await;
    let encode = |id: &str| -> String { id.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    for operation in operations() {
        let scene = Scene::on(&stack).await;
        let ids = [
            ("{game_id}", scene.game_id.as_str()),
            ("{namespace_id}", scene.namespace_id.as_str()),
            ("{version_id}", scene.version_id.as_str()),
            ("{lobby_id}", &scene.lobby_id),
            ("{user}", "nightly"),
            ("{domain}", &scene.domain()),
        ];
        let encoded = |path: String, (parameter, id): (&str, &str)| path.replace(parameter, &encode(id));
        let path = ids.into_iter().fold(operation.path.to_owned(), encoded);
        let (method, body) = (operation.method.clone(), operation.valid_body(&scene));
        let answer = stack.call(method, &path, operation.token(&scene), body).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_longest_identifier_is_looked_for() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let longest = "x".repeat(64);
    for operation in operations() {
        for (parameter, answer) in calls(&scene, operation, operation.token(&scene), &longest).await {
            let expected = match parameter {
                "{game_id}" => (403, "API_FORBIDDEN"),
                "{namespace_id}" => (404, "CLOUD_NAMESPACE_NOT_FOUND"),
                "{version_id}" => (404, "CLOUD_VERSION_NOT_FOUND"),
                _ => (400, "MATCHMAKER_LOBBY_NOT_FOUND"),
            };
            assert_eq!(answer.refusal(), expected, "{operation} {parameter}");
        }
    }
}

#[tokio::test]
async fn an_encoded_slash_separates_segments_so_that_no_operation_is_reached() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in operations() {
        for segment in ["a%2Fb", "%2F", "a%2f..%2fb", ""] {
            for (parameter, answer) in calls(&scene, operation, operation.token(&scene), segment).await {
                assert_eq!(answer.status, 404, "{operation} {parameter} {segment}");
                assert_eq!(answer.body, json!({ "message": "Not Found" }), "{segment}");
            }
        }
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_by_the_gateway_itself() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in OPERATIONS.iter() {
        let path = scene.path(operation.path);
        for (method, path) in [
            (Method::PATCH, path.clone()),
            (operation.method.clone(), format!("{path}/")),
            (operation.method.clone(), format!("{path}/more")),
            (operation.method.clone(), format!("/v1{path}")),
        ] {
            let answer = send(&stack, &method, &path, &[], "").await;
            assert_eq!(answer.status, 404, "{method} {path}");
            assert_eq!(answer.body, json!({ "message": "Not Found" }));
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_refused_by_the_gateway() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in operations() {
        for segment in ["%FF", "%C3", "%ED%A0%80"] {
            for (parameter, answer) in calls(&scene, operation, operation.token(&scene), segment).await {
                assert_eq!(answer.status, 400, "{operation} {parameter} {segment}");
                assert_eq!(answer.body, json!({ "message": "Bad Request" }), "{segment}");
            }
        }
    }
}

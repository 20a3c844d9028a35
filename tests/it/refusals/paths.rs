//! Path identifiers that can name nothing.

use muster_tests::{Answer, TestStack};
use serde_json::json;

use super::{Operation, Right};

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

/// The operation with `segment` as its game, then with it as its namespace.
async fn calls(stack: &TestStack, operation: &Operation, token: Option<&str>, segment: &str) -> [Answer; 2] {
    let demo = stack.demo();
    let call = async |path: String| {
        let body = operation.valid_body(demo);
        stack.call(operation.method.clone(), &path, token, body).await
    };
    [
        call(operation.path_in(segment, demo.namespace_id.as_str())).await,
        call(operation.path_in(demo.game_id.as_str(), segment)).await,
    ]
}

#[tokio::test]
async fn a_malformed_identifier_names_nothing_with_or_without_a_token() {
    let stack = TestStack::start().await;
    for operation in Operation::with(Right::Cloud) {
        for segment in malformed_segments() {
            for token in [operation.token(stack.demo()), None] {
                for answer in calls(&stack, operation, token, &segment).await {
                    assert_eq!(
                        answer.refusal(),
                        (404, "API_NOT_FOUND"),
                        "{operation:?} {segment}: {}",
                        answer.body
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn an_identifier_is_read_percent_decoded() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let encode = |id: &str| -> String { id.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let (game_id, namespace_id) = (demo.game_id.as_str(), demo.namespace_id.as_str());
    for operation in Operation::with(Right::Cloud) {
        let path = operation.path_in(&encode(game_id), &encode(namespace_id));
        let (method, body) = (operation.method.clone(), operation.valid_body(demo));
        let answer = stack.call(method, &path, operation.token(demo), body).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_longest_identifier_is_looked_for() {
    let stack = TestStack::start().await;
    let longest = "x".repeat(64);
    for operation in Operation::with(Right::Cloud) {
        let token = operation.token(stack.demo());
        let [game, namespace] = calls(&stack, operation, token, &longest).await;
        assert_eq!(game.refusal(), (403, "API_FORBIDDEN"), "{operation:?}");
        assert_eq!(namespace.refusal(), (404, "CLOUD_NAMESPACE_NOT_FOUND"), "{operation:?}");
    }
}

#[tokio::test]
async fn an_encoded_slash_separates_segments_so_that_no_operation_is_reached() {
    let stack = TestStack::start().await;
    for operation in Operation::with(Right::Cloud) {
        let token = operation.token(stack.demo());
        for segment in ["a%2Fb", "%2F", "a%2f..%2fb", ""] {
            for answer in calls(&stack, operation, token, segment).await {
                assert_eq!(answer.status, 404, "{operation:?} {segment}");
                assert_eq!(answer.body, json!({ "message": "Not Found" }), "{segment}");
            }
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_refused_by_the_gateway() {
    let stack = TestStack::start().await;
    for operation in Operation::with(Right::Cloud) {
        let token = operation.token(stack.demo());
        for segment in ["%FF", "%C3", "%ED%A0%80"] {
            for answer in calls(&stack, operation, token, segment).await {
                assert_eq!(answer.status, 400, "{operation:?} {segment}");
                assert_eq!(answer.body, json!({ "message": "Bad Request" }), "{segment}");
            }
        }
    }
}

//! What is refused, tried on every operation of the template: a later operation is one more row of [`OPERATIONS`].

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use muster_local::{demo::Demo, stack::TEMPLATE, template::Template};
use muster_tests::{Answer, TestStack};
use serde_json::{Value, json};
use shared::ids::{GameId, NamespaceId};

mod bodies;
mod development;
mod errors;
mod field_types;
mod origins;
mod paths;
mod precedence;
mod revocations;
mod tokens;

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Everybody; no token is looked at.
    None,
    /// Players of a namespace, and developers for mock answers.
    Player,
    /// Who holds the game's cloud token.
    Cloud,
}

/// One operation, as these tests try it.
#[derive(Debug)]
struct Operation {
    method: Method,
    /// Its path, as in the template.
    path: &'static str,
    right: Right,
    /// A body that it accepts; nothing where it reads none.
    body: Option<fn(&Demo) -> Value>,
    /// Whether its response is empty.
    answers_nothing: bool,
}

const OPERATIONS: [Operation; 6] = [
    Operation {
        method: Method::POST,
        path: "/matchmaker/lobbies/find",
        right: Right::Player,
        body: Some(|_| json!({ "game_modes": ["arena"] })),
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/bootstrap",
        right: Right::None,
        body: None,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate",
        right: Right::Cloud,
        body: Some(|_| json!({ "lobby_count_max": 1, "max_players": 1 })),
        answers_nothing: false,
    },
    Operation {
        method: Method::PUT,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth",
        right: Right::Cloud,
        body: Some(|_| json!({ "auth_type": "basic" })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user",
        right: Right::Cloud,
        // The hash of no password, in the right form.
        body: Some(|_| json!({ "user": "nightly", "password": format!("$2b$04${}", ".".repeat(53)) })),
        answers_nothing: true,
    },
    Operation {
        method: Method::PUT,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/version",
        right: Right::Cloud,
        body: Some(|demo| json!({ "version_id": demo.version_ids[1] })),
        answers_nothing: true,
    },
];

impl Operation {
    fn with(right: Right) -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(move |operation| operation.right == right)
    }

    /// The operations that look at a token.
    fn guarded() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| operation.right != Right::None)
    }

    /// The operations that read a body.
    fn reading() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| operation.body.is_some())
    }

    fn path_in(&self, game_id: &str, namespace_id: &str) -> String {
        self.path.replace("{game_id}", game_id).replace("{namespace_id}", namespace_id)
    }

    fn demo_path(&self, demo: &Demo) -> String {
        self.path_in(demo.game_id.as_str(), demo.namespace_id.as_str())
    }

    fn valid_body(&self, demo: &Demo) -> String {
        self.body.map(|body| body(demo).to_string()).unwrap_or_default()
    }

    /// A token of the demo that allows it.
    fn token<'a>(&self, demo: &'a Demo) -> Option<&'a str> {
        match self.right {
            Right::None => None,
            Right::Player => Some(&demo.tokens.public),
            Right::Cloud => Some(&demo.tokens.cloud),
        }
    }

    /// A valid request on the demo's namespace, but for the token.
    async fn call(&self, stack: &TestStack, token: Option<&str>) -> Answer {
        self.call_with_body(stack, token, self.valid_body(stack.demo())).await
    }

    /// A request that may be made, but for the body.
    async fn call_with(&self, stack: &TestStack, body: impl Into<Bytes>) -> Answer {
        self.call_with_body(stack, self.token(stack.demo()), body).await
    }

    async fn call_with_body(&self, stack: &TestStack, token: Option<&str>, body: impl Into<Bytes>) -> Answer {
        let path = self.demo_path(stack.demo());
        stack.call(self.method.clone(), &path, token, body).await
    }

    /// A valid request on the demo's namespace, but for the headers.
    async fn call_with_headers(&self, stack: &TestStack, headers: &[(&str, &[u8])]) -> Answer {
        let (path, body) = (self.demo_path(stack.demo()), self.valid_body(stack.demo()));
        send(stack, &self.method, &path, headers, body).await
    }
}

/// Sends a request with exactly these headers.
async fn send(
    stack: &TestStack,
    method: &Method,
    path: &str,
    headers: &[(&str, &[u8])],
    body: impl Into<Bytes>,
) -> Answer {
    let uri = format!("{}{path}", stack.demo().base_url);
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    stack.send(request.body(Full::new(body.into())).unwrap()).await
}

/// Writes an attribute of a namespace past every operation, as another process would.
async fn write_to_namespace(
    stack: &TestStack,
    game_id: &GameId,
    namespace_id: &NamespaceId,
    attribute: &str,
    value: AttributeValue,
) {
    let write = stack.store().client().update_item();
    let write = write
        .table_name(&stack.store().tables().catalog)
        .key("pk", AttributeValue::S(format!("GAME#{game_id}")))
        .key("sk", AttributeValue::S(format!("NAMESPACE#{namespace_id}")))
        .update_expression("SET #attribute = :value")
        .condition_expression("attribute_exists(pk)")
        .expression_attribute_names("#attribute", attribute)
        .expression_attribute_values(":value", value);
    let _written = write.send().await.unwrap();
}

#[test]
fn every_operation_of_the_template_is_tried() {
    let template = Template::parse(TEMPLATE).unwrap();
    let deployed: BTreeSet<_> = template.routes.iter().map(|route| route.key()).collect();
    let tried: BTreeSet<_> =
        OPERATIONS.iter().map(|operation| format!("{} {}", operation.method, operation.path)).collect();
    assert_eq!(deployed, tried);
}

#[tokio::test]
async fn a_valid_request_is_answered_with_200_and_json() {
    let stack = TestStack::start().await;
    for operation in &OPERATIONS {
        let answer = operation.call(&stack, operation.token(stack.demo())).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.body == json!({}), operation.answers_nothing, "{operation:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_by_the_gateway_itself() {
    let stack = TestStack::start().await;
    for operation in &OPERATIONS {
        let path = operation.demo_path(stack.demo());
        for (method, path) in [
            (Method::DELETE, path.clone()),
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

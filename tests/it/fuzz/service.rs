//! The service as functions are: each operation fed with the event of its example, on a namespace that no
//! case changed yet.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs,
    string::FromUtf8Error,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use harness::{Answer, TestStack, lobby_claims, mock_player};
use lambda_http::Body;
use muster_local::{gateway::Handler, stack::TEMPLATE, template::Template};
use proptest::{
    prop_assert, prop_assert_eq,
    test_runner::{TestCaseError, TestCaseResult},
};
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    models::{
        ids::NamespaceId,
        token::{Credential, CredentialKind},
    },
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    agreement::document::{self, Document},
    artefacts::workspace,
    refusals::scene::{development_host, player_token},
};

/// The longest message of any refusal, in characters.
const MESSAGE_CHARS_MAX: usize = 1_024;
/// Characters of an event that a failure shows; its body comes first.
const CHARS_SHOWN: usize = 2_000;

/// Words about Muster's internals, which no message contains.
const INTERNALS: [&str; 8] =
    ["DynamoDB", "Table", "attribute", "expression", "panicked", "shared::", ".rs", "Exception"];

/// An operation of the interface.
pub struct Operation {
    /// Its function's, verb-noun.
    pub name: String,
    pub documented: document::Operation,
    /// Valid bodies with placeholders, if it reads any: of its example event and of the document.
    pub bodies: Vec<Value>,
    event: Value,
    handler: Handler,
}

impl Operation {
    /// Whether a caller with this right, as the document calls it, is a developer, who gets mock answers.
    pub fn is_mock(right: Option<&str>) -> bool {
        right == Some("developmentToken")
    }

    /// The rights that real answers need.
    pub fn real_rights(&self) -> Vec<Option<&'static str>> {
        self.documented.rights().into_iter().filter(|right| !Self::is_mock(*right)).collect()
    }

    /// Whether its body may be any JSON, not just an object.
    pub fn reads_any_json(&self) -> bool {
        self.name == "set-lobby-state"
    }
}

/// All operations over one database.
pub struct Service {
    runtime: Runtime,
    pub stack: TestStack,
    pub operations: Vec<Operation>,
    /// What placeholders stand for, as far as it was needed.
    texts: RefCell<BTreeMap<&'static str, String>>,
    is_used: Cell<bool>,
}

/// What bodies and events name, each made when it is first needed: of a namespace that nothing else uses.
const PLACEHOLDERS: [&str; 9] = [
    "GAME_ID",
    "NAMESPACE_ID",
    "VERSION_ID",
    "FRESH_NAME",
    "LOBBY_ID",
    "SERVER_ID",
    "MOCK_TOKEN",
    "PLAYER_TOKEN",
    "LOBBY_TOKEN",
];

/// A request as a function gets it.
pub struct Event<'a> {
    pub operation: &'a Operation,
    right: Option<&'a str>,
    pub json: Value,
}

/// Operations after whose success what placeholders stand for is as good as before.
const HARMLESS: [&str; 14] = [
    "create-cloud-token",
    "create-development-token",
    "create-public-token",
    "create-server-token",
    "create-version",
    "delete-cdn-auth-user",
    "heartbeat-server",
    "set-cdn-auth-type",
    "set-lobby-ready",
    "set-lobby-state",
    "update-namespace-version",
    "validate-matchmaker-config",
    "validate-namespace",
    "validate-version",
];

impl Service {
    pub fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let stack = runtime.block_on(TestStack::start());
        let operation = |route: muster_local::route::Route| {
            let name = route.code_uri.strip_prefix("functions/").unwrap().to_owned();
            let file = workspace().join("tests/events").join(&name).with_extension("json");
            let mut event: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            if let Some(body) = event["body"].as_str() {
                let body = body.replace("tournament", "FRESH_NAME");
                event["body"] = body.replace("play.example.com", "NAMESPACE_ID.example").into();
            }
            let mut documented = Document::read().operations().into_iter();
            let is_of_route = |operation: &document::Operation| {
                (&operation.method, operation.path) == (&route.method, route.path.as_str())
            };
            let documented = documented.find(is_of_route).unwrap();
            let example = event["body"].as_str().map(|body| serde_json::from_str(body).unwrap());
            let examples = documented.request_examples().into_iter().flatten().map(with_placeholders);
            Operation {
                bodies: example.into_iter().chain(examples).collect(),
                documented,
                handler: stack.stack.functions().handler(&route.code_uri).unwrap(),
                name,
                event,
            }
        };
        let operations = Template::parse(TEMPLATE).unwrap().routes.into_iter().map(operation).collect();
        Self { runtime, operations, texts: RefCell::default(), is_used: Cell::new(false), stack }
    }

    /// The operation of a function.
    pub fn operation(&self, name: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.name == name).unwrap()
    }

    /// The operations that read a body.
    pub fn reading(&self) -> Vec<&Operation> {
        self.operations.iter().filter(|operation| !operation.bodies.is_empty()).collect()
    }

    pub fn keys(&self) -> &TokenKeys {
        self.stack.stack.keys()
    }

    /// The token of a right, as the document calls it.
    pub fn token(&self, right: &str) -> String {
        self.text(match right {
            "cloudToken" => "CLOUD_TOKEN",
            "publicToken" => "PUBLIC_TOKEN",
            "developmentToken" => "DEVELOPMENT_TOKEN",
            "serverToken" => "SERVER_TOKEN",
            "lobbyToken" => "LOBBY_TOKEN",
            other => panic!("nobody calls with a {other}"),
        })
    }

    /// The text with what its placeholders stand for.
    pub fn realized(&self, text: &str) -> String {
        let named = PLACEHOLDERS.into_iter().filter(|placeholder| text.contains(placeholder));
        named.fold(text.to_owned(), |text, placeholder| text.replace(placeholder, &self.text(placeholder)))
    }

    /// The same of bytes, where they are text.
    pub fn realized_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        str::from_utf8(bytes).map_or_else(|_| bytes.to_vec(), |text| self.realized(text).into_bytes())
    }

    /// The operation's example event, made real, by a caller with a right.
    pub fn event<'a>(&self, operation: &'a Operation, right: Option<&'a str>) -> Event<'a> {
        let text = operation.event.to_string().replace("Bearer TOKEN", "");
        let mut event: Value = serde_json::from_str(&self.realized(&text)).unwrap();
        let headers = event["headers"].as_object_mut().unwrap();
        headers.remove("authorization");
        match right {
            Some(right) => {
                headers.insert("authorization".to_owned(), format!("Bearer {}", self.token(right)).into())
            }
            None => headers.insert("origin".to_owned(), self.text("ORIGIN").into()),
        };
        if ["find-lobby", "create-lobby"].contains(&operation.name.as_str()) {
            self.text("HOME");
            self.text("OTHER_HOME");
        }
        if Operation::is_mock(right)
            && let Some(body) = event["body"].as_str()
        {
            event["body"] = body.replace(&self.text("PLAYER_TOKEN"), &self.text("MOCK_TOKEN")).into();
        }
        Event { operation, right, json: event }
    }

    /// Feeds the operation with an event, whose answer must be one that the document lists, and is no
    /// failure.
    pub fn answer(&self, event: &Event<'_>) -> Result<Answer, TestCaseError> {
        let answer = self.feed(event);
        if answer.status == 200 && event.may_change() {
            self.is_used.set(true);
        }
        documented(event, &answer)?;
        Ok(answer)
    }

    /// Calls an operation with a body, of which the gateway makes base64 if `is_encoded` or if it must.
    pub fn ask(
        &self,
        operation: &Operation,
        right: Option<&str>,
        body: &[u8],
        is_encoded: bool,
    ) -> Result<Answer, TestCaseError> {
        let mut event = self.event(operation, right);
        let body = self.realized_bytes(body);
        match String::from_utf8(body) {
            Ok(text) if !is_encoded => event.json["body"] = text.into(),
            text => event.set_encoded(&text.map_or_else(FromUtf8Error::into_bytes, String::into_bytes)),
        }
        self.answer(&event)
    }

    fn feed(&self, event: &Event<'_>) -> Answer {
        let request = lambda_http::request::from_str(&event.json.to_string()).unwrap();
        let response = self.runtime.block_on((event.operation.handler)(request));
        let (parts, body) = response.into_parts();
        let Body::Text(body) = body else { panic!("an answer is text") };
        Answer::new(parts, body.as_bytes())
    }

    /// What a placeholder stands for. After a success, the changed parts are created again.
    pub fn text(&self, name: &'static str) -> String {
        if self.is_used.take() {
            self.texts.borrow_mut().clear();
        }
        let known = self.texts.borrow().get(name).cloned();
        known.unwrap_or_else(|| {
            let text = self.make(name);
            self.texts.borrow_mut().insert(name, text.clone());
            text
        })
    }

    fn make(&self, name: &'static str) -> String {
        let (demo, keys, ambient) = (self.stack.demo(), self.keys(), self.stack.ambient());
        let (game_id, namespace_id) =
            (&demo.game_id, || -> NamespaceId { self.text("NAMESPACE_ID").parse().unwrap() });
        let credential =
            |kind| keys.issue_credential(kind, &Credential::fresh(game_id, &namespace_id(), &ambient));
        let port = json!({ "hostname": "a.example", "port": 443, "protocol": "https" });
        match name {
            "GAME_ID" => game_id.to_string(),
            "VERSION_ID" => demo.version_ids[1].to_string(),
            "FRESH_NAME" => format!("name-{}", ambient.uuid()),
            "NAMESPACE_ID" => {
                let body = json!({ "display_name": "Fuzz", "version_id": demo.version_ids[0],
                                   "name_id": format!("fuzz-{}", ambient.uuid()) });
                let made = self.set_up("create-namespace", "cloudToken", &body);
                made.body["namespace_id"].as_str().unwrap().to_owned()
            }
            "ORIGIN" => {
                let origin = format!("https://{}.example", ambient.uuid());
                self.runtime.block_on(self.stack.add_domain(&namespace_id(), &origin));
                origin
            }
            "CLOUD_TOKEN" => demo.tokens.cloud.clone(),
            "PUBLIC_TOKEN" => credential(CredentialKind::Public),
            "SERVER_TOKEN" => credential(CredentialKind::Server),
            "DEVELOPMENT_TOKEN" => keys.issue_development(
                &Credential::fresh(game_id, &namespace_id(), &ambient),
                development_host(),
            ),
            "MOCK_TOKEN" => {
                keys.issue_development_player(&mock_player(development_host(), None, &ambient), ambient.now())
            }
            // Where lobbies are placed.
            "HOME" | "OTHER_HOME" => {
                let region_id = if name == "HOME" { "fra" } else { "nyc" };
                let home = json!({ "region_id": region_id, "capacity": 1_000, "ports": { "default": port } });
                let made = self.set_up("register-server", "serverToken", &home);
                made.body["server_id"].as_str().unwrap().to_owned()
            }
            // Where none is.
            "SERVER_ID" => {
                let server_id = format!("server-{}", ambient.uuid());
                let idle = json!({ "server_id": server_id, "region_id": "nyc", "game_modes": ["solo"],
                                   "ports": { "default": port } });
                self.set_up("register-server", "serverToken", &idle);
                server_id
            }
            "LOBBY_ID" => {
                self.text("HOME");
                let own = json!({ "game_mode": "arena", "lobby_config": { "rounds": 3 } });
                self.set_up("create-lobby", "publicToken", &own).lobby_id()
            }
            "PLAYER_TOKEN" => {
                let body = json!({ "lobby_id": self.text("LOBBY_ID") });
                player_token(&self.set_up("join-lobby", "publicToken", &body))
            }
            "LOBBY_TOKEN" => {
                let lobby_id = self.text("LOBBY_ID").parse().unwrap();
                let claims = lobby_claims(game_id, &namespace_id(), lobby_id, ambient.now());
                keys.issue_lobby(&claims, ambient.now())
            }
            other => panic!("nothing is called {other}"),
        }
    }

    fn set_up(&self, name: &str, right: &str, body: &Value) -> Answer {
        let operation = self.operation(name);
        let mut json = operation.event.clone();
        json["pathParameters"] = json!({ "game_id": self.stack.demo().game_id });
        json["headers"]["authorization"] = format!("Bearer {}", self.token(right)).into();
        json["body"] = body.to_string().into();
        self.feed(&Event { operation, right: Some(right), json }).expect_ok()
    }
}

/// A documented body with placeholders for what only a namespace has.
fn with_placeholders(body: &Value) -> Value {
    let mut body = body.clone();
    for (name, placeholder) in [
        ("domain", "NAMESPACE_ID.example"),
        ("lobby_id", "LOBBY_ID"),
        ("name_id", "FRESH_NAME"),
        ("player_token", "PLAYER_TOKEN"),
        ("server_id", "SERVER_ID"),
        ("version_id", "VERSION_ID"),
    ] {
        if let Some(field) = body.get_mut(name) {
            *field = placeholder.into();
        }
    }
    body
}

impl Event<'_> {
    /// Whether a success may change what placeholders stand for.
    fn may_change(&self) -> bool {
        let Operation { name, documented, .. } = self.operation;
        documented.method != http::Method::GET
            && !Operation::is_mock(self.right)
            && !HARMLESS.contains(&name.as_str())
    }

    /// Gives it a body, as the gateway does when that is no text.
    pub fn set_encoded(&mut self, body: &[u8]) {
        self.json["body"] = BASE64.encode(body).into();
        self.json["isBase64Encoded"] = true.into();
    }
}

/// Whether the answer is documented, and follows what decision 2 says of every response.
fn documented(event: &Event<'_>, answer: &Answer) -> TestCaseResult {
    let Event { operation, json, .. } = event;
    let Answer { status, headers, body, .. } = answer;
    let at = || {
        let event: String = json.to_string().chars().take(CHARS_SHOWN).collect();
        format!("{} answers {status} {body} to {event}", operation.name)
    };
    prop_assert!(status.as_u16() < 500, "{}", at());
    prop_assert_eq!(operation.documented.differences(answer), [""; 0], "{}", at());
    let ray_id = headers.get("x-request-id").map(|id| id.to_str().unwrap());
    prop_assert_eq!(headers.get("rvt-ray-id").map(|id| id.to_str().unwrap()), ray_id, "{}", at());
    if let Some(request_id) = json["requestContext"]["requestId"].as_str().filter(|id| !id.is_empty()) {
        prop_assert_eq!(ray_id, Some(request_id), "{}", at());
    }
    prop_assert_eq!(headers["content-type"].to_str().unwrap(), "application/json", "{}", at());
    if *status == 200 {
        return Ok(());
    }
    prop_assert_eq!(body["ray_id"].as_str(), ray_id, "{}", at());
    let (_, code) = answer.refusal();
    let responses = operation.documented.responses();
    let response = responses.iter().find(|response| response.status == status.as_u16()).unwrap();
    prop_assert!(response.codes().contains(code), "{}", at());
    let message = body["message"].as_str().unwrap();
    let sent = json["body"].as_str().unwrap_or_default();
    let leaked = INTERNALS.iter().find(|internal| message.contains(**internal) && !sent.contains(**internal));
    prop_assert_eq!(leaked, None, "{}", at());
    prop_assert!(message.chars().count() <= MESSAGE_CHARS_MAX, "{}", at());
    Ok(())
}

//! What is refused, tried on every operation of the template: a later operation is one more row of
//! [`OPERATIONS`].

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeSet, fmt};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{Answer, TestStack};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use muster_local::{stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::models::ids::{GameId, NamespaceId};

mod bodies;
mod development;
mod errors;
mod field_types;
mod mistakes;
mod origins;
mod paths;
mod precedence;
mod revocations;
mod scene;
mod tokens;
mod warnings;

pub use scene::{Scene, player_token};

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// All callers; no token is read.
    None,
    /// Players of a namespace.
    Player,
    /// The lobby server of a lobby.
    Lobby,
    /// Either of them.
    LobbyOrPlayer,
    /// The game servers of a namespace.
    GameServer,
    /// They, or the lobby server of the lobby in question.
    GameServerOrLobby,
    /// Who holds the game's cloud token.
    Cloud,
}

impl Right {
    /// The kinds of tokens that give it, the usual one first; developers get mock answers.
    const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Player => &["public", "development"],
            Self::Lobby => &["lobby", "development"],
            Self::LobbyOrPlayer => &["public", "lobby", "development"],
            Self::GameServer => &["server", "development"],
            Self::GameServerOrLobby => &["server", "lobby", "development"],
            Self::Cloud => &["cloud"],
        }
    }
}

/// What an operation reads of a body.
enum Reads {
    /// Nothing; no body is looked at.
    Nothing,
    /// An object; here, one that it accepts.
    Object(fn(&Scene<'_>) -> Value),
    /// Any JSON.
    AnyJson,
}

/// One operation, as these tests try it.
struct Operation {
    method: Method,
    /// Its path, as in the template.
    path: &'static str,
    right: Right,
    reads: Reads,
    /// Whether its response is empty.
    answers_nothing: bool,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

const OPERATIONS: [Operation; 38] = [
    Operation {
        method: Method::POST,
        path: "/matchmaker/lobbies/find",
        right: Right::Player,
        reads: Reads::Object(|_| json!({ "game_modes": ["arena"] })),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/lobbies/join",
        right: Right::Player,
        reads: Reads::Object(|scene| json!({ "lobby_id": scene.lobby_id })),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/lobbies/create",
        right: Right::Player,
        reads: Reads::Object(|_| json!({ "game_mode": "arena" })),
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/matchmaker/lobbies/list",
        right: Right::Player,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/matchmaker/lobbies/{lobby_id}/state",
        right: Right::LobbyOrPlayer,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::PUT,
        path: "/matchmaker/lobbies/state",
        right: Right::Lobby,
        reads: Reads::AnyJson,
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/lobbies/ready",
        right: Right::Lobby,
        reads: Reads::Nothing,
        answers_nothing: true,
    },
    Operation {
        method: Method::PUT,
        path: "/matchmaker/lobbies/closed",
        right: Right::Lobby,
        reads: Reads::Object(|_| json!({ "is_closed": true })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/players/connected",
        right: Right::Lobby,
        reads: Reads::Object(|scene| json!({ "player_token": scene.player })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/players/disconnected",
        right: Right::Lobby,
        reads: Reads::Object(|scene| json!({ "player_token": scene.player })),
        answers_nothing: true,
    },
    Operation {
        method: Method::GET,
        path: "/matchmaker/players/statistics",
        right: Right::Player,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/matchmaker/regions",
        right: Right::Player,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/servers/register",
        right: Right::GameServer,
        reads: Reads::Object(|scene| scene::registration(&scene.server_id)),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/servers/heartbeat",
        right: Right::GameServer,
        reads: Reads::Object(|scene| json!({ "server_id": scene.server_id })),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/servers/end-lobby",
        right: Right::GameServerOrLobby,
        reads: Reads::Object(|scene| json!({ "lobby_id": scene.lobby_id })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/matchmaker/servers/deregister",
        right: Right::GameServer,
        reads: Reads::Object(|scene| json!({ "server_id": scene.server_id })),
        answers_nothing: true,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/bootstrap",
        right: Right::None,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/versions",
        right: Right::Cloud,
        reads: Reads::Object(
            |_| json!({ "display_name": "1.2", "config": { "game_modes": { "arena": { "regions": ["fra"] } } } }),
        ),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces",
        right: Right::Cloud,
        reads: Reads::Object(
            |scene| json!({ "display_name": "New", "version_id": scene.version_id, "name_id": scene.fresh_name }),
        ),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config",
        right: Right::Cloud,
        // As many lobbies as the demo may hold: scenes go on being made.
        reads: Reads::Object(|_| json!({ "lobby_count_max": 4_000, "max_players": 1_001 })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate",
        right: Right::Cloud,
        reads: Reads::Object(|_| json!({ "lobby_count_max": 1, "max_players": 1 })),
        answers_nothing: false,
    },
    Operation {
        method: Method::PUT,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth",
        right: Right::Cloud,
        reads: Reads::Object(|_| json!({ "auth_type": "basic" })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user",
        right: Right::Cloud,
        // The hash of no password, in the right form.
        reads: Reads::Object(
            |_| json!({ "user": "nightly", "password": format!("$2b$04${}", ".".repeat(53)) }),
        ),
        answers_nothing: true,
    },
    Operation {
        method: Method::PUT,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/version",
        right: Right::Cloud,
        reads: Reads::Object(|scene| json!({ "version_id": scene.version_id })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development",
        right: Right::Cloud,
        reads: Reads::Object(
            |_| json!({ "hostname": "127.0.0.1", "ports": { "default": { "port": 7_777, "protocol": "http" } } }),
        ),
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/server",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/games/{game_id}",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/versions/validate",
        right: Right::Cloud,
        reads: Reads::Object(
            |_| json!({ "display_name": "1.2", "config": { "game_modes": { "arena": { "regions": ["fra"] } } } }),
        ),
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/games/{game_id}/versions/{version_id}",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/validate",
        right: Right::Cloud,
        reads: Reads::Object(|scene| json!({ "display_name": "New", "name_id": scene.fresh_name })),
        answers_nothing: false,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::DELETE,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: true,
    },
    Operation {
        method: Method::PUT,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth",
        right: Right::Cloud,
        reads: Reads::Object(|_| json!({ "enabled": true })),
        answers_nothing: true,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/domains",
        right: Right::Cloud,
        reads: Reads::Object(|scene| json!({ "domain": scene.domain() })),
        answers_nothing: true,
    },
    Operation {
        method: Method::DELETE,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: true,
    },
    Operation {
        method: Method::GET,
        path: "/cloud/games/{game_id}/namespaces/{namespace_id}/version-history",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
    Operation {
        method: Method::POST,
        path: "/cloud/games/{game_id}/tokens/cloud",
        right: Right::Cloud,
        reads: Reads::Nothing,
        answers_nothing: false,
    },
];

impl Operation {
    /// The operation at the only path of the table that ends so.
    fn at(path: &str) -> &'static Self {
        let mut found = OPERATIONS.iter().filter(|operation| operation.path.ends_with(path));
        let (Some(operation), None) = (found.next(), found.next()) else {
            panic!("{path} is no operation's end, or several operations'");
        };
        operation
    }

    fn with(right: Right) -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(move |operation| operation.right == right)
    }

    /// The operations that look at a token.
    fn guarded() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| operation.right != Right::None)
    }

    /// The operations that a token of this kind allows.
    fn taking(kind: &str) -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(move |operation| operation.takes(kind))
    }

    /// The operations that a page of a registered domain needs no token for.
    fn for_pages() -> impl Iterator<Item = &'static Self> {
        Self::taking("public")
    }

    /// The operations that read a body.
    fn reading() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| !matches!(operation.reads, Reads::Nothing))
    }

    /// The operations that read an object.
    fn reading_object() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| matches!(operation.reads, Reads::Object(_)))
    }

    fn takes(&self, kind: &str) -> bool {
        self.right.kinds().contains(&kind)
    }

    /// Whether it is an operation on one namespace of a game.
    fn is_on_namespace(&self) -> bool {
        self.path.contains("{namespace_id}")
    }

    /// Whether it reads its body before it looks at a token, as find does.
    fn reads_body_first(&self) -> bool {
        self.right == Right::Player && !matches!(self.reads, Reads::Nothing)
    }

    fn path_in(&self, game_id: &str, namespace_id: &str) -> String {
        let path = self.path.replace("{game_id}", game_id).replace("{namespace_id}", namespace_id);
        let path = path.replace("{version_id}", "unknown").replace("{user}", "nightly");
        path.replace("{domain}", "page.example")
    }

    fn valid_body(&self, scene: &Scene<'_>) -> String {
        match self.reads {
            Reads::Nothing => String::new(),
            Reads::Object(body) => body(scene).to_string(),
            Reads::AnyJson => json!({ "round": 2 }).to_string(),
        }
    }

    /// A token of the scene that allows it.
    fn token<'a>(&self, scene: &'a Scene<'_>) -> Option<&'a str> {
        self.right.kinds().first().map(|kind| scene.token(kind))
    }

    /// A request that is answered with a success, once for each scene.
    async fn succeed(&self, scene: &Scene<'_>) -> Answer {
        let answer = self.call(scene, self.token(scene)).await;
        assert_eq!(answer.status, 200, "{self}: {}", answer.body);
        answer
    }

    /// A valid request, but for the token; a developer's players are those of mock answers.
    async fn call(&self, scene: &Scene<'_>, token: Option<&str>) -> Answer {
        let mut body = self.valid_body(scene);
        if token.is_some_and(|token| token.starts_with("dev_")) {
            body = body.replace(&scene.player, &scene.mock_player);
        }
        self.call_with_body(scene, token, body).await
    }

    /// A request that may be made, but for the body.
    async fn call_with(&self, scene: &Scene<'_>, body: impl Into<Bytes>) -> Answer {
        self.call_with_body(scene, self.token(scene), body).await
    }

    async fn call_with_body(&self, scene: &Scene<'_>, token: Option<&str>, body: impl Into<Bytes>) -> Answer {
        scene.stack.call(self.method.clone(), &scene.path(self.path), token, body).await
    }

    /// A valid request, but for the headers.
    async fn call_with_headers(&self, scene: &Scene<'_>, headers: &[(&str, &[u8])]) -> Answer {
        let (path, body) = (scene.path(self.path), self.valid_body(scene));
        send(scene.stack, &self.method, &path, headers, body).await
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
    let tried: BTreeSet<_> = OPERATIONS.iter().map(Operation::to_string).collect();
    assert_eq!(deployed, tried);
}

#[tokio::test]
async fn a_valid_request_is_answered_with_200_and_json() {
    let stack = TestStack::start().await;
    for operation in &OPERATIONS {
        let answer = operation.succeed(&Scene::on(&stack).await).await;
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.body == json!({}), operation.answers_nothing, "{operation}: {}", answer.body);
        assert!(answer.body.is_object(), "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_by_the_gateway_itself() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in &OPERATIONS {
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

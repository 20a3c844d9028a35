//! A deployment for functions that run as processes: the tables of a stack, keys of its own, example events
//! made real.

use std::{collections::BTreeMap, fs};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{TestStack, lobby_claims};
use regex_lite::{Captures, Regex};
use serde_json::Value;
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    cloud::issuing::issue_cloud_token,
    models::{
        ids::{GameId, LobbyId, NamespaceId, ServerKey},
        lobby::Lobby,
        namespace::Namespace,
        rights::{GameRight, NamespaceRight},
        server::Server,
        token::{Claims, Credential, CredentialKind, PlayerSeat},
    },
};

use super::{service::Instance, status_and_body};
use crate::{
    artefacts::{build_binaries, functions, workspace},
    refusals::scene::Scene,
};

/// As CloudFormation generates it: 64 letters and digits.
pub const SIGNING_KEY: &str = "9sVh3qT0cZ7mXb2LwKe8RjYp4NdGfU6aQx1WtCo5iHuEzMvBnPkSrDyAlIgJO0F2";

/// A stack's tables, for functions that run as processes beside it, under the machine's clock as they do.
pub struct Deployment {
    pub stack: TestStack,
    pub keys: TokenKeys,
    pub public: String,
    pub server: String,
    pub cloud: String,
}

/// An example event about a lobby, its players and a game server that no other example is about.
pub struct Example {
    pub event: Value,
    pub lobby_id: LobbyId,
    /// Of the lobby's first player, who is not in the event.
    pub creator: PlayerSeat,
    /// Of the player in the event.
    pub player: PlayerSeat,
    /// The game server in the event.
    pub server: ServerKey,
    /// Every token that the event or its like could carry.
    pub secrets: Vec<String>,
}

impl Deployment {
    pub async fn start() -> Self {
        // Built before the world begins, whose seats lapse by the real clock.
        build_binaries();
        let stack = TestStack::start_live().await;
        let (demo, ambient) = (stack.demo(), Ambient::system());
        let keys = TokenKeys::new(SIGNING_KEY.as_bytes(), None).unwrap();
        let credential = |kind| {
            keys.issue_credential(kind, &Credential::fresh(&demo.game_id, &demo.namespace_id, &ambient))
        };
        let public = credential(CredentialKind::Public);
        // Its own key, but the token that the servers belong to.
        let Ok(Claims::Server(owner)) = stack.stack.keys().verify(&demo.tokens.server, stack.clock.now())
        else {
            panic!("no server token");
        };
        let server = keys.issue_credential(CredentialKind::Server, &owner);
        let cloud =
            issue_cloud_token(stack.store(), &ambient, &GameRight::of_operator(demo.game_id.clone())).await;
        let cloud = cloud.unwrap().reveal().to_owned();
        Self { stack, keys, public, server, cloud }
    }

    pub fn game_id(&self) -> &GameId {
        &self.stack.demo().game_id
    }

    pub fn namespace_id(&self) -> &NamespaceId {
        &self.stack.demo().namespace_id
    }

    /// What the template sets for the function, and where this deployment's tables are.
    pub fn environment(&self, binary: &str) -> BTreeMap<String, String> {
        let mut environment = environment(binary);
        let endpoint = self.stack.stack.store_endpoint().to_owned();
        environment.insert("AWS_ENDPOINT_URL_DYNAMODB".to_owned(), endpoint);
        environment
    }

    pub async fn instance(&self, binary: &str) -> Instance {
        Instance::start(binary, &self.environment(binary)).await
    }

    /// The event of a file, about a lobby and a server of its own and with a token that is good for it.
    pub async fn example(&self, file: &str) -> Example {
        let path = workspace().join("tests/events").join(file).with_extension("json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scene = Scene::on(&self.stack).await;
        let seat = |token: &str| match self.stack.stack.keys().verify(token, self.stack.clock.now()) {
            Ok(Claims::Player(seat)) => seat,
            other => panic!("no player token: {other:?}"),
        };
        let (creator, player) = (seat(&scene.creator), seat(&scene.player));
        let now = Ambient::system().now();
        let lobby = lobby_claims(scene.game_id, scene.namespace_id, player.lobby_id.clone(), now);
        let lobby_token = self.keys.issue_lobby(&lobby, now);
        let player_token = self.keys.issue_player(&player, now);
        // A heartbeat of the lobbies' server lists them.
        let server_id = if file == "heartbeat-server" { "demo-fra" } else { &scene.server_id };
        let token = match right_of(&text) {
            "cloud" => &self.cloud,
            "server" => &self.server,
            "lobby" => &lobby_token,
            _ => &self.public,
        };
        let placeholder = Regex::new("(PLAYER_)?TOKEN|(NAMESPACE|GAME|VERSION|LOBBY|SERVER)_ID").unwrap();
        let text = placeholder.replace_all(&text, |found: &Captures<'_>| match &found[0] {
            "PLAYER_TOKEN" => player_token.as_str(),
            "TOKEN" => token,
            "NAMESPACE_ID" => scene.namespace_id.as_str(),
            "GAME_ID" => scene.game_id.as_str(),
            "VERSION_ID" => scene.version_id.as_str(),
            "LOBBY_ID" => player.lobby_id.as_str(),
            _ => server_id,
        });
        Example {
            event: serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")),
            lobby_id: player.lobby_id.clone(),
            creator,
            player,
            server: ServerKey {
                namespace_id: scene.namespace_id.clone(),
                server_id: server_id.parse().unwrap(),
            },
            secrets: vec![
                self.cloud.clone(),
                self.public.clone(),
                self.server.clone(),
                lobby_token.clone(),
                player_token.clone(),
            ],
        }
    }

    /// What a fresh instance answers to an event.
    pub async fn answer_to(&self, binary: &str, event: &Value) -> (u64, Value) {
        let mut instance = self.instance(binary).await;
        status_and_body(event, &instance.invoke(&event.to_string()).await.answer())
    }

    /// What a fresh instance answers to the event of a file, of the same name or not.
    pub async fn answer(&self, binary: &str, file: &str) -> (u64, Value) {
        self.answer_to(binary, &self.example(file).await.event).await
    }

    /// A function's example event and its success.
    pub async fn succeed(&self, binary: &str) -> (Example, Value) {
        let example = self.example(binary).await;
        let (status, body) = self.answer_to(binary, &example.event).await;
        assert_eq!(status, 200, "{binary}: {body}");
        (example, body)
    }

    pub async fn lobby(&self, id: &LobbyId) -> Lobby {
        self.stack.store().lobby(id).await.unwrap().unwrap()
    }

    pub async fn server(&self, key: &ServerKey) -> Server {
        self.stack.store().server(key).await.unwrap().unwrap()
    }

    /// Writes an attribute of a lobby past every operation.
    pub async fn write_to_lobby(&self, id: &LobbyId, attribute: &str, value: AttributeValue) {
        let change = format!("SET #{attribute} = :value");
        self.stack.alter_lobby(id.as_str(), &change, &[(":value", value)]).await;
    }

    /// Lets every reservation of a lobby lapse, long ago.
    pub async fn let_seats_lapse(&self, id: &LobbyId) {
        let lobby = self.lobby(id).await;
        let lapsed =
            |seat: &shared::models::ids::SeatId| (seat.to_string(), AttributeValue::N("1".to_owned()));
        let reserved = AttributeValue::M(lobby.reserved.keys().map(lapsed).collect());
        self.write_to_lobby(id, "reserved", reserved).await;
    }

    pub async fn namespace(&self) -> Namespace {
        let namespace = self.stack.store().namespace(self.game_id(), self.namespace_id());
        namespace.await.unwrap().unwrap()
    }

    pub async fn right(&self) -> NamespaceRight {
        self.stack.right(self.namespace_id()).await
    }
}

/// Whose token an example event carries.
fn right_of(event: &str) -> &'static str {
    let event: Value = serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}"));
    let route = event["routeKey"].as_str().expect("a route");
    let of_lobby = [
        "PUT /matchmaker/lobbies/state",
        "POST /matchmaker/lobbies/ready",
        "PUT /matchmaker/lobbies/closed",
        "PUT /matchmaker/lobbies/publicity",
        "POST /matchmaker/players/connected",
        "POST /matchmaker/players/disconnected",
        "POST /matchmaker/players/remove",
    ];
    if route.contains(" /cloud/") {
        "cloud"
    } else if route.contains(" /matchmaker/servers/") {
        "server"
    } else if of_lobby.contains(&route) {
        "lobby"
    } else {
        "public"
    }
}

/// What the template sets for a function.
pub fn environment(binary: &str) -> BTreeMap<String, String> {
    let mut functions = functions(SIGNING_KEY).into_iter();
    let function = functions.find(|function| function.binary == binary);
    function.unwrap_or_else(|| panic!("the template has no {binary}")).environment
}

//! What valid requests need: a lobby with a state and players, a game server, and who may speak for them.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{Answer, TestStack, alter, mock_player};
use http::Method;
use serde_json::{Value, json};
use shared::models::{
    ids::{GameId, NamespaceId, VersionId},
    ports::{PortNumbers, Protocol, ServerPort},
    token::{Credential, CredentialKind, DevelopmentHost},
};

/// As many lobbies as the demo may hold, and more players than those have.
const LOBBY_COUNT_MAX: u32 = 4_000;
const PLAYERS_MAX: u32 = 100_000;

/// A namespace with a lobby and a game server that no other scene has.
pub struct Scene<'a> {
    pub stack: &'a TestStack,
    pub game_id: &'a GameId,
    pub namespace_id: &'a NamespaceId,
    /// A version of the game.
    pub version_id: &'a VersionId,
    /// A private lobby with a configuration, a state and two seats, both reserved.
    pub lobby_id: String,
    /// Of its first player, who created it.
    pub creator: String,
    /// Of its second player.
    pub player: String,
    /// Of a mock answer's player.
    pub mock_player: String,
    /// A registered server without lobbies; none is ever placed there.
    pub server_id: String,
    /// A name that nothing has yet.
    pub fresh_name: String,
    pub tokens: Tokens,
}

/// One token of each kind that a caller may show.
#[derive(Clone)]
pub struct Tokens {
    pub cloud: String,
    pub public: String,
    pub development: String,
    pub server: String,
    pub lobby: String,
}

impl<'a> Scene<'a> {
    /// A scene in the demo's namespace.
    pub async fn on(stack: &'a TestStack) -> Self {
        let demo = stack.demo();
        Self::with(stack, &demo.tokens.public, &demo.tokens.server).await
    }

    /// A scene in the demo's other namespace.
    pub async fn in_other_namespace(stack: &'a TestStack) -> Self {
        let demo = stack.demo();
        let (game_id, namespace_id) = (&demo.game_id, &demo.other_namespace_id);
        let (keys, ambient) = (stack.stack.keys(), stack.ambient());
        let credential =
            |kind| keys.issue_credential(kind, &Credential::fresh(game_id, namespace_id, &ambient));
        let tokens = Tokens {
            cloud: demo.tokens.cloud.clone(),
            public: credential(CredentialKind::Public),
            development: keys
                .issue_development(&Credential::fresh(game_id, namespace_id, &ambient), development_host()),
            server: credential(CredentialKind::Server),
            lobby: String::new(),
        };
        Self::prepare(stack, namespace_id, tokens).await
    }

    /// A scene in the demo's namespace, made and to be played with these tokens.
    pub async fn with(stack: &'a TestStack, public: &str, server: &str) -> Self {
        let demo = stack.demo();
        let tokens = Tokens {
            cloud: demo.tokens.cloud.clone(),
            public: public.to_owned(),
            development: demo.tokens.development.clone(),
            server: server.to_owned(),
            lobby: String::new(),
        };
        Self::prepare(stack, &demo.namespace_id, tokens).await
    }

    /// Another scene in the same namespace, with the same tokens but for the lobby's.
    pub async fn another(&self) -> Self {
        Self::prepare(self.stack, self.namespace_id, self.tokens.clone()).await
    }

    async fn prepare(stack: &'a TestStack, namespace_id: &'a NamespaceId, tokens: Tokens) -> Self {
        let ambient = stack.ambient();
        let demo = stack.demo();
        let call = async |method, path: &str, token: &str, body: Value| -> Answer {
            stack.call(method, path, Some(token), body.to_string()).await.expect_ok()
        };
        // A lobby of a player's own: no find and no other scene takes part in it.
        let create = json!({ "game_mode": "arena", "lobby_config": { "rounds": 3 } });
        let created = call(Method::POST, "/matchmaker/lobbies/create", &tokens.public, create).await;
        let lobby_id = created.lobby_id();
        let join = json!({ "lobby_id": lobby_id });
        let joined = call(Method::POST, "/matchmaker/lobbies/join", &tokens.public, join).await;
        let lobby = stack.lobby_token(&demo.game_id, namespace_id, &lobby_id);
        call(Method::PUT, "/matchmaker/lobbies/state", &lobby, json!({ "round": 1 })).await;
        let server_id = format!("server-{}", ambient.uuid());
        let register = registration(&server_id);
        call(Method::POST, "/matchmaker/servers/register", &tokens.server, register).await;
        Self {
            stack,
            game_id: &demo.game_id,
            namespace_id,
            version_id: &demo.version_ids[1],
            lobby_id,
            creator: player_token(&created),
            player: player_token(&joined),
            mock_player: stack
                .stack
                .keys()
                .issue_development_player(&mock_player(development_host(), None, &ambient), ambient.now()),
            server_id,
            fresh_name: format!("name-{}", ambient.uuid()),
            tokens: Tokens { lobby, ..tokens },
        }
    }

    /// The token of a caller's kind.
    pub fn token(&self, kind: &str) -> &str {
        let Tokens { cloud, public, development, server, lobby } = &self.tokens;
        match kind {
            "cloud" => cloud,
            "public" => public,
            "development" => development,
            "server" => server,
            "lobby" => lobby,
            other => panic!("nobody calls with a {other} token"),
        }
    }

    /// A path template with its parameters filled in.
    pub fn path(&self, template: &str) -> String {
        let path = template.replace("{game_id}", self.game_id.as_str());
        let path = path.replace("{namespace_id}", self.namespace_id.as_str());
        let path = path.replace("{version_id}", self.version_id.as_str());
        let path = path.replace("{user}", "nightly").replace("{domain}", &self.domain());
        path.replace("{lobby_id}", &self.lobby_id)
    }

    /// A documented body with what it names made real.
    pub fn realized(&self, example: &Value) -> Value {
        let mut body = example.clone();
        for (name, real) in [
            ("domain", self.domain().as_str()),
            ("lobby_id", &self.lobby_id),
            ("player_token", &self.player),
            ("server_id", &self.server_id),
            ("version_id", self.version_id.as_str()),
            ("name_id", &self.fresh_name),
        ] {
            if let Some(field) = body.get_mut(name) {
                *field = real.into();
            }
        }
        // Without a limit of seats per client, the response to a longer time has a warning.
        if let Some(secs) = body.get_mut("exclude_seconds") {
            *secs = 0.into();
        }
        // Scenes go on being made, and their players are one client.
        if body["lobby_count_max"].as_u64() > Some(0) {
            body["lobby_count_max"] = LOBBY_COUNT_MAX.into();
            body["max_players"] = PLAYERS_MAX.into();
        }
        body
    }

    /// The body as it is for the caller with a token: a developer's players are those of mock answers.
    pub fn for_caller(&self, token: Option<&str>, body: String) -> String {
        let is_developer = token.is_some_and(|token| token.starts_with("dev_"));
        if is_developer { body.replace(&self.player, &self.mock_player) } else { body }
    }

    /// A domain that no other namespace has.
    pub fn domain(&self) -> String {
        format!("{}.example", self.namespace_id)
    }
}

/// What a server registers with to which no lobby of a scene ever goes.
pub fn registration(server_id: &str) -> Value {
    json!({
        "server_id": server_id, "region_id": "nyc", "game_modes": ["solo"],
        "ports": { "default": { "hostname": "nyc.example", "port": 443, "protocol": "https" } },
    })
}

/// The token of the player whom an answer gave a seat.
pub fn player_token(answer: &Answer) -> String {
    let token = answer.body["player"]["token"].as_str();
    token.unwrap_or_else(|| panic!("no token: {}", answer.body)).to_owned()
}

/// A developer's machine with one port.
pub fn development_host() -> DevelopmentHost {
    let port = ServerPort {
        hostname: "localhost".to_owned(),
        numbers: PortNumbers::Port(7_777),
        protocol: Protocol::Udp,
    };
    let ports = BTreeMap::from([("game".to_owned(), port)]);
    DevelopmentHost { hostname: "localhost".to_owned(), ports: ports.try_into().unwrap() }
}

/// Writes an attribute of a namespace past every operation, as another process would.
pub async fn write_to_namespace(
    stack: &TestStack,
    game_id: &GameId,
    namespace_id: &NamespaceId,
    attribute: &str,
    value: AttributeValue,
) {
    let (store, change) = (stack.store(), format!("SET #{attribute} = :value"));
    let (game, namespace) = (format!("GAME#{game_id}"), format!("NAMESPACE#{namespace_id}"));
    let key = [("pk", &*game), ("sk", &*namespace)];
    alter(store, &store.tables().catalog, &key, &change, &[(":value", value)]).await;
}

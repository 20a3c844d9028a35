//! A stack of a test's own, and the games that it makes there.

use std::{env, net::Ipv4Addr, path::PathBuf, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use muster_local::{
    demo::Demo,
    emulator::{
        Storage,
        link::{Link, patient_client_over},
    },
    stack::{Options, Stack},
};
use serde_json::{Value, json};
use shared::{
    base::{
        ambient::{Ambient, Timestamp},
        log,
    },
    cloud::provision::{CreatedGame, NewGame, NewNamespace, create_game},
    models::{
        game::Region,
        ids::{GameId, GameMode, LobbyId, NamespaceId, RegionId, ServerKey, VersionId},
        lobby::Lobby,
        player_data::PlayerData,
        pool::Pool,
        rights::{GameRight, NamespaceRight},
        server::Server,
        token::{Claims, Credential, CredentialKind, DevelopmentHost, LobbyClaims, MockPlayer, PlayerSeat},
    },
    outside::endpoints::Outside,
    rules::origin::OriginHost,
    store::{cdn::DomainOutcome, client::Store},
};

use crate::{
    answer::Answer,
    clock::TestClock,
    instance::Instance,
    second_opinion,
    tables::{all_lobbies, alter},
};

/// The variable with a folder: tests then use the gateway and the storage of `muster-local serve`, each stack
/// in a new folder there.
pub const SERVED_VARIABLE: &str = "MUSTER_TEST_SERVED";

/// A whole stack on ports of its own, with a clock that stands still.
pub struct TestStack {
    /// The stack.
    pub stack: Stack,
    /// Its clock.
    pub clock: TestClock,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The claims of the lobby token that a game server with its own token since `issued_at` gets.
///
/// # Panics
/// Never.
#[must_use]
pub fn lobby_claims(
    game_id: &GameId,
    namespace_id: &NamespaceId,
    lobby_id: LobbyId,
    issued_at: Timestamp,
) -> LobbyClaims {
    let (game_id, namespace_id) = (game_id.clone(), namespace_id.clone());
    let token_id = "of-the-game-server".parse().expect("an identifier");
    let issued_at = Timestamp(issued_at.secs() * 1_000);
    LobbyClaims { server: Credential { game_id, namespace_id, token_id, issued_at }, lobby_id }
}

impl TestStack {
    /// Starts a stack in memory.
    pub async fn start() -> Self {
        Self::start_with(Storage::Memory).await
    }

    /// Starts a stack in memory whose items are identical in each run, byte for byte, as long as they are
    /// created one after the other.
    pub async fn start_repeatable() -> Self {
        let clock = TestClock::repeatable();
        // The stack's own tasks draw from another source: nobody knows when.
        let ambient = clock.with_system_randomness().ambient();
        Self { clock, ..Self::start_on(Storage::Memory, ambient).await }
    }

    /// Starts a stack in memory whose clock is the machine's, for benchmarks.
    pub async fn start_live() -> Self {
        Self::start_on(Storage::Memory, Ambient::system()).await
    }

    /// Starts a stack.
    pub async fn start_with(storage: Storage) -> Self {
        let clock = TestClock::starting_now();
        Self { clock: clock.clone(), ..Self::start_on(storage, clock.ambient()).await }
    }

    async fn start_on(storage: Storage, ambient: Ambient) -> Self {
        Self::start_among(Outside::default(), storage, ambient).await
    }

    /// Starts a stack in memory with the captcha providers and backends `outside`.
    pub async fn start_with_outside(outside: Outside) -> Self {
        let clock = TestClock::starting_now();
        Self { clock: clock.clone(), ..Self::start_among(outside, Storage::Memory, clock.ambient()).await }
    }

    async fn start_among(outside: Outside, storage: Storage, ambient: Ambient) -> Self {
        let storage = match (storage, env::var_os(SERVED_VARIABLE)) {
            (Storage::Memory, Some(folder)) => {
                Storage::Durable(PathBuf::from(folder).join(Ambient::system().uuid().to_string()))
            }
            (storage, _) => storage,
        };
        // Silent, unless MUSTER_LOG sets more.
        log::log_text(log::Targets::new());
        let host = Ipv4Addr::LOCALHOST.into();
        let options = Options {
            host,
            port: 0,
            public_url: None,
            storage,
            ambient,
            outside,
            game: None,
            faults: None,
            own_program: None,
        };
        let other = if options.storage == Storage::Memory { second_opinion::fresh().await } else { None };
        let stack = match other {
            Some(database) => Stack::start_on(database, options).await,
            None => Stack::start(options).await,
        };
        let stack = stack.expect("the stack starts");
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { stack, clock: TestClock::starting_now(), client }
    }

    /// The demo game.
    #[must_use]
    pub fn demo(&self) -> &Demo {
        &self.stack.demo
    }

    /// The stack's store.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.stack.store()
    }

    /// The stack's randomness under its clock.
    #[must_use]
    pub fn ambient(&self) -> Ambient {
        self.clock.ambient()
    }

    /// The operator's right to a namespace of the demo game.
    pub async fn right(&self, namespace_id: &NamespaceId) -> NamespaceRight {
        let right = GameRight::of_operator(self.demo().game_id.clone());
        right.on_namespace(namespace_id, self.store()).await.expect("a namespace of the demo")
    }

    /// Gives a namespace of the demo game the host of `origin`, which no other namespace has.
    pub async fn add_domain(&self, namespace_id: &NamespaceId, origin: &str) {
        let host = OriginHost::parse(origin).expect("an origin");
        let right = self.right(namespace_id).await;
        let added = self.store().add_domain(&right, &host, self.clock.now()).await;
        assert_eq!(added.expect("a write"), DomainOutcome::Added);
    }

    /// The versions that a namespace ran, newest first, at most 32.
    pub async fn version_history(&self, namespace_id: &NamespaceId) -> Vec<VersionId> {
        let history = self.store().version_history(namespace_id, Timestamp::NEVER, 32).await;
        history.expect("a read").into_iter().map(|entry| entry.version_id).collect()
    }

    /// An isolated function instance on the stack's database, under the stack's clock.
    #[must_use]
    pub fn instance(&self) -> Instance {
        Instance::new(self.stack.store_endpoint(), self.stack.keys(), &self.ambient())
    }

    /// The same whose calls of the database go over `link`.
    #[must_use]
    pub fn instance_over(&self, link: impl Link) -> Instance {
        Instance::over(patient_client_over(Arc::new(link)), self.stack.keys(), &self.ambient())
    }

    /// Sends any request.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        answered(&self.client, request).await
    }

    /// Sends a request from one of this machine's own addresses.
    pub async fn send_from(&self, address: Ipv4Addr, request: Request<Full<Bytes>>) -> Answer {
        let mut connector = HttpConnector::new();
        connector.set_local_address(Some(address.into()));
        answered(&Client::builder(TokioExecutor::new()).build(connector), request).await
    }

    /// Sends a request with a token, if any, and a body as it is.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.demo().base_url));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.header("content-type", "application/json");
        self.send(request.body(Full::new(body.into())).expect("a request")).await
    }

    /// A find with the demo's public token.
    pub async fn find(&self, body: Value) -> Answer {
        self.find_with(&self.demo().tokens.public, body).await
    }

    /// A find with a token.
    pub async fn find_with(&self, token: &str, body: Value) -> Answer {
        self.call(Method::POST, "/matchmaker/lobbies/find", Some(token), body.to_string()).await
    }

    /// The path of a cloud operation on the demo's namespace.
    #[must_use]
    pub fn namespace_path(&self, operation: &str) -> String {
        let Demo { game_id, namespace_id, .. } = self.demo();
        format!("/cloud/games/{game_id}/namespaces/{namespace_id}/{operation}")
    }

    /// The token that a lobby server gets with its lobby.
    #[must_use]
    pub fn lobby_token(&self, game_id: &GameId, namespace_id: &NamespaceId, lobby_id: &str) -> String {
        let lobby_id = lobby_id.parse().expect("an identifier");
        let claims = lobby_claims(game_id, namespace_id, lobby_id, self.clock.now());
        self.stack.keys().issue_lobby(&claims, self.clock.now())
    }

    /// The seat that an answer's player token stands for.
    #[must_use]
    pub fn seat(&self, answer: &Answer) -> PlayerSeat {
        let token =
            answer.body["player"]["token"].as_str().unwrap_or_else(|| panic!("no token: {}", answer.body));
        self.seat_of(token)
    }

    /// The seat that a player token stands for.
    #[must_use]
    pub fn seat_of(&self, token: &str) -> PlayerSeat {
        match self.stack.keys().verify(token, self.clock.now()) {
            Ok(Claims::Player(seat)) => seat,
            other => panic!("no player token: {other:?}"),
        }
    }

    /// Every lobby of the namespace, ended ones too, by a full read of the table.
    pub async fn all_lobbies(&self, namespace_id: &NamespaceId) -> Vec<Lobby> {
        all_lobbies(self.store(), namespace_id).await
    }

    /// Shows a lobby to looks from then on: later than its last write, as an index that lags, or sooner, as
    /// a find that crashed before it hid the lobby.
    pub async fn show_from(&self, lobby_id: &str, from: Timestamp) {
        let from = AttributeValue::N(from.to_string());
        self.alter_lobby(lobby_id, "SET #joinable_from = :from", &[(":from", from)]).await;
    }

    /// Changes a lobby past every operation, as [`alter`] does.
    pub async fn alter_lobby(&self, lobby_id: &str, change: &str, values: &[(&str, AttributeValue)]) {
        let (store, key) = (self.store(), [("lobby_id", lobby_id)]);
        alter(store, &store.tables().lobbies, &key, change, values).await;
    }

    /// The same of a game server.
    pub async fn alter_server(&self, server: &ServerKey, change: &str, values: &[(&str, AttributeValue)]) {
        let (store, key) = (self.store(), server.to_string());
        alter(store, &store.tables().servers, &[("server", &key)], change, values).await;
    }

    /// Makes a game of its own with one namespace: regions `fra` and `nyc`, a server for `places` lobbies in
    /// each, if any.
    pub async fn make_game(&self, name: &str, modes: Value, lobby_count_max: u32, places: u32) -> TestGame {
        self.make_game_of(new_game(name, modes, lobby_count_max), places).await
    }

    /// The same for a game described in full.
    pub async fn make_game_of(&self, new: NewGame, places: u32) -> TestGame {
        let ambient = self.ambient();
        let created = create_game(self.store(), &ambient, new).await.expect("a game");
        let game = TestGame::new(self, created);
        for region_id in ["fra", "nyc"].into_iter().filter(|_| places > 0) {
            game.add_server(self, region_id, region_id, places, Timestamp::NEVER).await;
        }
        game
    }
}

async fn answered(client: &Client<HttpConnector, Full<Bytes>>, request: Request<Full<Bytes>>) -> Answer {
    let response = client.request(request).await.expect("the gateway answers");
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Answer::new(parts, &body)
}

/// The request for a game with one namespace and the regions `fra` and `nyc`. Its modes reserve seats for two
/// minutes unless they say otherwise, so that no test depends on the default.
#[must_use]
pub fn new_game(name: &str, mut modes: Value, lobby_count_max: u32) -> NewGame {
    for mode in modes.as_object_mut().into_iter().flat_map(|modes| modes.values_mut()) {
        if mode["reservation_seconds"].is_null() {
            mode["reservation_seconds"] = json!(120);
        }
    }
    let region = |display_name: &str, latitude, longitude| Region {
        display_name: display_name.to_owned(),
        provider_display_name: "Test".to_owned(),
        latitude,
        longitude,
        probe: None,
        starter: None,
    };
    let regions = [("fra", region("Frankfurt", 50.0, 8.0)), ("nyc", region("New York", 40.0, -74.0))];
    NewGame {
        name_id: name.to_owned(),
        display_name: name.to_owned(),
        regions: regions.into_iter().map(|(id, region)| (id.parse().expect("an id"), region)).collect(),
        version_name: "1".to_owned(),
        config: serde_json::from_value(json!({ "game_modes": modes })).expect("a configuration"),
        namespaces: vec![NewNamespace {
            name_id: "prod".to_owned(),
            display_name: "Production".to_owned(),
            lobby_count_max,
            max_players_per_client: u32::MAX,
        }],
    }
}

/// A game that a test made.
pub struct TestGame {
    /// What was made.
    pub created: CreatedGame,
    /// A public token of its namespace.
    pub public: String,
    /// A server token of its namespace.
    pub server: String,
}

impl TestGame {
    fn new(stack: &TestStack, created: CreatedGame) -> Self {
        let (game_id, namespace_id) = (&created.game.game_id, &created.namespaces[0].namespace_id);
        let keys = stack.stack.keys();
        let public = keys.issue_credential(
            CredentialKind::Public,
            &Credential::fresh(game_id, namespace_id, &stack.ambient()),
        );
        let server = keys.issue_credential(
            CredentialKind::Server,
            &Credential::fresh(game_id, namespace_id, &stack.ambient()),
        );
        Self { created, public, server }
    }

    /// The game.
    #[must_use]
    pub fn game_id(&self) -> &GameId {
        &self.created.game.game_id
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace_id(&self) -> &NamespaceId {
        &self.created.namespaces[0].namespace_id
    }

    /// The pool of its first version.
    #[must_use]
    pub fn pool(&self, mode: &str, region: &str) -> Pool {
        Pool {
            namespace_id: self.namespace_id().clone(),
            version_id: self.created.version.version_id.clone(),
            game_mode: mode.parse::<GameMode>().expect("a mode"),
            region_id: region.parse::<RegionId>().expect("a region"),
            shard: 0,
        }
    }

    /// Adds a game server.
    pub async fn add_server(
        &self,
        stack: &TestStack,
        id: &str,
        region: &str,
        places: u32,
        lease_until: Timestamp,
    ) {
        use shared::models::{
            ids::ServerKey,
            ports::{PortNumbers, Protocol, ServerPort},
            server::PlacementPool,
        };
        let port = ServerPort {
            hostname: format!("{id}.example"),
            numbers: PortNumbers::Port(7_777),
            protocol: Protocol::Udp,
        };
        let ports = std::collections::BTreeMap::from([("default".to_owned(), port)]);
        let now = stack.clock.now();
        let namespace_id = self.namespace_id().clone();
        let region_id = region.parse().expect("a region");
        let key = ServerKey { namespace_id: namespace_id.clone(), server_id: id.parse().expect("an id") };
        let pool = PlacementPool { namespace_id, region_id, build_id: None };
        let registration = shared::models::ids::WriteId::random(&stack.ambient());
        let ports = ports.try_into().expect("ports");
        let server = Server {
            lease_until,
            ..Server::standing((key, registration), (self.game_id().clone(), pool), (places, ports), now)
        };
        assert!(stack.store().add_server(&server).await.expect("a server"), "{id} is new");
    }

    /// The token that a lobby server of its namespace gets with its lobby.
    #[must_use]
    pub fn lobby_token(&self, stack: &TestStack, lobby_id: &str) -> String {
        stack.lobby_token(self.game_id(), self.namespace_id(), lobby_id)
    }

    /// A request of a player of its namespace.
    pub async fn play(&self, stack: &TestStack, operation: &str, body: Value) -> Answer {
        stack
            .call(Method::POST, &format!("/matchmaker/{operation}"), Some(&self.public), body.to_string())
            .await
    }

    /// The same with an `Idempotency-Key`.
    pub async fn play_keyed(&self, stack: &TestStack, operation: &str, key: &str, body: Value) -> Answer {
        let request = Request::post(format!("{}/matchmaker/{operation}", stack.demo().base_url))
            .header("authorization", format!("Bearer {}", self.public))
            .header("idempotency-key", key);
        stack.send(request.body(Full::new(body.to_string().into())).expect("a request")).await
    }

    /// A request of a game server of its namespace.
    pub async fn serve(&self, stack: &TestStack, operation: &str, body: Value) -> Answer {
        let path = format!("/matchmaker/servers/{operation}");
        stack.call(Method::POST, &path, Some(&self.server), body.to_string()).await
    }

    /// A request of the lobby server of one of its lobbies.
    pub async fn host(
        &self,
        stack: &TestStack,
        lobby_id: &str,
        (method, operation): (Method, &str),
        body: Value,
    ) -> Answer {
        let token = self.lobby_token(stack, lobby_id);
        stack.call(method, &format!("/matchmaker/{operation}"), Some(&token), body.to_string()).await
    }

    /// The lobby server connects the player of an answer.
    pub async fn connect(&self, stack: &TestStack, seat: &Answer) -> Answer {
        let body = json!({ "player_token": seat.body["player"]["token"] });
        self.host(stack, &seat.lobby_id(), (Method::POST, "players/connected"), body).await
    }

    /// The same, asking for what the server learns of the player.
    pub async fn connect_with_details(&self, stack: &TestStack, seat: &Answer) -> Answer {
        let body = json!({ "player_token": seat.body["player"]["token"], "details": true });
        self.host(stack, &seat.lobby_id(), (Method::POST, "players/connected"), body).await
    }

    /// The lobby server disconnects the player of an answer.
    pub async fn disconnect(&self, stack: &TestStack, seat: &Answer) -> Answer {
        let body = json!({ "player_token": seat.body["player"]["token"] });
        self.host(stack, &seat.lobby_id(), (Method::POST, "players/disconnected"), body).await
    }

    /// A lobby as it is in the table.
    pub async fn lobby(&self, stack: &TestStack, lobby_id: &str) -> Lobby {
        let lobby_id = lobby_id.parse().expect("an identifier");
        stack.store().lobby(&lobby_id).await.expect("a read").expect("a lobby")
    }

    /// A find in its namespace.
    pub async fn find(&self, stack: &TestStack, body: Value) -> Answer {
        stack.find_with(&self.public, body).await
    }
}

/// A player of a mock response, with what a client says of it.
pub fn mock_player(host: DevelopmentHost, data: Option<PlayerData>, ambient: &Ambient) -> MockPlayer {
    MockPlayer { token_id: ambient.uuid().into(), generation: 0, data, host }
}

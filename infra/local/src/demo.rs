//! The demo game, with lobbies to find from the start.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    cloud::{
        issuing::Issuer,
        provision::{NewGame, NewNamespace, ProvisionError, add_version, create_game},
    },
    models::{
        errors::Error,
        game::{Game, Region},
        ids::{GameId, GameMode, NamespaceId, RegionId, ServerKey, VersionId, WriteId},
        namespace::Namespace,
        ports::{PortNumbers, PortRange, Ports, Protocol, ServerPort},
        rights::GameRight,
        server::{PlacementPool, Server},
        starter::StarterSettings,
        token::{CredentialKind, DevelopmentHost},
        version::VersionConfig,
    },
    store::client::Store,
};

/// The demo game's name.
const NAME_ID: &str = "demo";
/// Its namespaces' names, the main one first.
const NAMESPACES: [(&str, &str); 2] = [("prod", "Production"), ("staging", "Staging")];
/// Lobbies of each demo server. Each region of each namespace has one server.
const LOBBIES_PER_SERVER: u32 = 2_000;
/// Lobbies of each namespace: the sum of its servers' places.
const LOBBY_COUNT_MAX: u32 = 4_000;
/// The argument by which this program becomes the demo's game server.
pub const GAME_SERVER: &str = "example-server";
/// What a player of the demo waits for: a process of this machine.
const START_SECONDS: u32 = 15;
/// Lobbies of each process of the demo, and how long it stays without them.
const LOBBIES_PER_PROCESS: u32 = 20;
const IDLE_SECONDS: u32 = 30;
/// Off: the demo's players all come from one address.
const MAX_PLAYERS_PER_CLIENT: u32 = u32::MAX;

/// The response of `GET /_local/demo`: all data for a first request, of the demo game or of a studio's own.
#[derive(Clone, Debug, Serialize)]
pub struct Demo {
    /// The URL at which clients reach the gateway.
    pub base_url: String,
    /// The game.
    pub game_id: GameId,
    /// Its main namespace.
    pub namespace_id: NamespaceId,
    /// Another namespace; the same if the game has no other.
    pub other_namespace_id: NamespaceId,
    /// Its versions, the namespace's current one first.
    pub version_ids: Vec<VersionId>,
    /// The modes of the current version.
    pub game_modes: Vec<GameMode>,
    /// What the current version has started as game servers, if it has them started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Value>,
    /// Its regions, the default one of [`Demo::mode`] first.
    pub region_ids: Vec<RegionId>,
    /// Tokens of this start.
    pub tokens: DemoTokens,
}

/// The demo's tokens, fresh at each start.
#[derive(Clone, Debug, Serialize)]
pub struct DemoTokens {
    /// For the cloud operations.
    pub cloud: String,
    /// For players of the namespace.
    pub public: String,
    /// For mock responses.
    pub development: String,
    /// For game servers of the namespace.
    pub server: String,
}

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The game cannot be created.
    #[error("the demo game cannot be created: {0}")]
    Provision(#[from] ProvisionError),
    /// The store failed.
    #[error("the game cannot be read: {}", .0.cause().unwrap_or("the store failed"))]
    Store(#[from] Error),
    /// A part of the demo here is not valid, or parts of a kept demo are missing.
    #[error("the game is incomplete: {0}")]
    Incomplete(String),
}

fn incomplete(problem: impl ToString) -> DemoError {
    DemoError::Incomplete(problem.to_string())
}

impl Demo {
    /// Creates the demo game, or uses the one in the data folder, and issues its tokens. Its game servers are
    /// processes of `program` on demand, or records without a process when there is none.
    ///
    /// # Errors
    /// [`DemoError`].
    pub async fn prepare(
        store: &Store,
        keys: &Arc<TokenKeys>,
        ambient: &Ambient,
        base_url: String,
        program: Option<&Path>,
    ) -> Result<Self, DemoError> {
        let game = match store.game_by_name(NAME_ID).await? {
            Some(game) => game,
            None => make(store, ambient, program.is_some()).await?,
        };
        let namespaces = store.namespaces(&game.game_id).await?;
        let named = |name_id: &str| {
            let found = namespaces.iter().find(|namespace| namespace.name_id == name_id);
            found.ok_or_else(|| incomplete(format!("it has no namespace `{name_id}`")))
        };
        let [(main_name, _), (other_name, _)] = NAMESPACES;
        let (main, other) = (named(main_name)?, named(other_name)?);
        for namespace in [main, other] {
            if !is_served(store, &game, namespace).await? {
                add_servers(store, ambient, &game, namespace).await?;
            }
        }
        if let Some(program) = program {
            set_starters(store, &game, program).await?;
        }
        Self::of(store, keys, ambient, base_url, (game, [main, other])).await
    }

    /// The data of a game with a main and another namespace, with fresh tokens.
    ///
    /// # Errors
    /// [`DemoError`].
    pub async fn of(
        store: &Store,
        keys: &Arc<TokenKeys>,
        ambient: &Ambient,
        base_url: String,
        (game, [main, other]): (Game, [&Namespace; 2]),
    ) -> Result<Self, DemoError> {
        let issuer = Issuer::new(store.clone(), Arc::clone(keys), ambient.clone());
        let right = GameRight::of_operator(game.game_id.clone());
        let cloud = issuer.cloud(&right).await?;
        let right = right.on_namespace(&main.namespace_id, store).await?;
        let development = DevelopmentHost { hostname: "127.0.0.1".to_owned(), ports: development_ports()? };
        let tokens = DemoTokens {
            cloud: cloud.reveal().to_owned(),
            public: issuer.credential(&right, CredentialKind::Public).await?,
            development: issuer.development(&right, development).await?,
            server: issuer.credential(&right, CredentialKind::Server).await?,
        };
        let mut demo = Self {
            base_url,
            namespace_id: main.namespace_id.clone(),
            other_namespace_id: other.namespace_id.clone(),
            version_ids: Vec::new(),
            game_modes: Vec::new(),
            build: None,
            region_ids: Vec::new(),
            game_id: game.game_id,
            tokens,
        };
        demo.renew(store).await?;
        Ok(demo)
    }

    /// The mode of a first find.
    #[must_use]
    pub fn mode(&self) -> Option<&GameMode> {
        self.game_modes.iter().find(|mode| mode.as_str() == "duel").or_else(|| self.game_modes.first())
    }

    /// Reads the regions, the versions and the modes of the current one.
    async fn renew(&mut self, store: &Store) -> Result<(), DemoError> {
        let game = store.game(&self.game_id).await?.ok_or_else(|| incomplete("it is gone"))?;
        let main = store.namespace(&self.game_id, &self.namespace_id).await?;
        let main = main.ok_or_else(|| incomplete("its namespace is gone"))?;
        let mut versions = store.listed_versions(&self.game_id).await?;
        versions.sort_by_key(|version| (version.version_id != main.version_id, version.created_at));
        let current = versions.first().ok_or_else(|| incomplete("it has no version"))?;
        let config = store.version(&self.game_id, &current.version_id).await?.map(|version| version.config);
        self.game_modes = current.game_modes.clone();
        self.version_ids = versions.into_iter().map(|version| version.version_id).collect();
        let (modes, servers) = config.map(|config| (config.game_modes, config.servers)).unwrap_or_default();
        self.build = servers.map(|servers| servers.build);
        let default = self.mode().and_then(|mode| modes.get(mode)?.regions.first());
        self.region_ids = game.regions.into_keys().collect();
        self.region_ids.sort_by_key(|region_id| Some(region_id) != default);
        Ok(())
    }
}

/// The data as `GET /_local/demo` returns them now.
#[derive(Debug)]
pub struct CurrentDemo(Mutex<Demo>);

impl CurrentDemo {
    /// The data of a start.
    #[must_use]
    pub const fn new(demo: Demo) -> Self {
        Self(Mutex::new(demo))
    }

    /// The data as they are now.
    #[must_use]
    pub fn demo(&self) -> Demo {
        self.lock().clone()
    }

    /// Reads what may have changed. If that fails, the data stay as they were.
    pub async fn renew(&self, store: &Store) {
        let mut demo = self.demo();
        if demo.renew(store).await.is_ok() {
            *self.lock() = demo;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Demo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn make(store: &Store, ambient: &Ambient, on_demand: bool) -> Result<Game, DemoError> {
    let region = |display_name: &str, latitude, longitude| Region {
        display_name: display_name.to_owned(),
        provider_display_name: "Demo".to_owned(),
        latitude,
        longitude,
        probe: None,
        starter: None,
    };
    let regions = BTreeMap::from([
        (region_id("fra")?, region("Frankfurt", 50.11, 8.68)),
        (region_id("nyc")?, region("New York", 40.71, -74.01)),
    ]);
    let created = create_game(
        store,
        ambient,
        NewGame {
            name_id: NAME_ID.to_owned(),
            display_name: "Demo".to_owned(),
            regions,
            version_name: "1.0".to_owned(),
            config: config(on_demand)?,
            namespaces: NAMESPACES
                .into_iter()
                .map(|(name_id, display_name)| NewNamespace {
                    name_id: name_id.to_owned(),
                    display_name: display_name.to_owned(),
                    lobby_count_max: LOBBY_COUNT_MAX,
                    max_players_per_client: MAX_PLAYERS_PER_CLIENT,
                })
                .collect(),
        },
    )
    .await?;
    add_version(store, ambient, &created.game.game_id, "1.1".to_owned(), config(on_demand)?).await?;
    Ok(created.game)
}

fn config(on_demand: bool) -> Result<VersionConfig, DemoError> {
    let regions = json!(["fra", "nyc"]);
    let servers = json!({
        "build": GAME_SERVER, "capacity": LOBBIES_PER_PROCESS,
        "start_seconds": START_SECONDS, "idle_seconds": IDLE_SECONDS,
    });
    let mut config = json!({
        "game_modes": {
            "duel": { "regions": regions, "max_players": 2 },
            "arena": {
                "regions": regions, "max_players": 10, "party_size_max": 4, "taggable": true,
                "allow_dynamic_max_players": true, "actions": { "create": { "enabled": true } },
            },
            "solo": { "regions": regions, "max_players": 1 },
        }
    });
    if let (true, Some(fields)) = (on_demand, config.as_object_mut()) {
        fields.insert("servers".to_owned(), servers);
    }
    serde_json::from_value(config).map_err(incomplete)
}

/// Whether the namespace's version has its game servers started.
async fn is_served(store: &Store, game: &Game, namespace: &Namespace) -> Result<bool, DemoError> {
    let version = store.version(&game.game_id, &namespace.version_id).await?;
    Ok(version.is_some_and(|version| version.config.servers.is_some()))
}

/// Has `program`, which may be another one than at the last start, run the game servers of each region.
async fn set_starters(store: &Store, game: &Game, program: &Path) -> Result<(), DemoError> {
    let program = program.to_str().ok_or_else(|| incomplete("the name of this program is not UTF-8"))?;
    for region_id in game.regions.keys() {
        let command = vec![program.to_owned(), GAME_SERVER.to_owned()];
        let starter = StarterSettings::Process { command };
        if store.starter(&game.game_id, region_id).await?.as_ref() != Some(&starter) {
            let _is_there = store.set_starter(&game.game_id, region_id, starter).await?;
        }
    }
    Ok(())
}

/// Adds the fixed server of each region, unless it is there.
async fn add_servers(
    store: &Store,
    ambient: &Ambient,
    game: &Game,
    namespace: &Namespace,
) -> Result<(), DemoError> {
    let now = ambient.now();
    for region_id in game.regions.keys() {
        let server_id = format!("demo-{region_id}").parse().map_err(incomplete)?;
        let key = ServerKey { namespace_id: namespace.namespace_id.clone(), server_id };
        let pool = PlacementPool {
            namespace_id: namespace.namespace_id.clone(),
            region_id: region_id.clone(),
            build_id: None,
        };
        let server = Server::standing(
            (key, WriteId::random(ambient)),
            (game.game_id.clone(), pool),
            (LOBBIES_PER_SERVER, server_ports(region_id)?),
            now,
        );
        let _was_there = !store.add_server(&server).await?;
    }
    Ok(())
}

/// Frankfurt has a single TLS port, every other region a range without TLS.
fn server_ports(region_id: &RegionId) -> Result<Ports, DemoError> {
    let (numbers, protocol) = if region_id.as_str() == "fra" {
        (PortNumbers::Port(443), Protocol::Https)
    } else {
        (PortNumbers::PortRange(PortRange { min: 26_000, max: 27_999 }), Protocol::Udp)
    };
    let port = ServerPort { hostname: format!("{region_id}.demo.example"), numbers, protocol };
    Ports::try_from(BTreeMap::from([("default".to_owned(), port)])).map_err(incomplete)
}

fn development_ports() -> Result<Ports, DemoError> {
    let port = ServerPort {
        hostname: "127.0.0.1".to_owned(),
        numbers: PortNumbers::Port(7_777),
        protocol: Protocol::Http,
    };
    Ports::try_from(BTreeMap::from([("default".to_owned(), port)])).map_err(incomplete)
}

fn region_id(text: &str) -> Result<RegionId, DemoError> {
    text.parse().map_err(incomplete)
}

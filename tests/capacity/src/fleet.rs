//! The game servers: as many as the scenario needs, of different sizes, each with a heartbeat.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use shared::{
    auth::{
        keys::TokenKeys,
        matchmaker::{GameServerRight, MatchmakerAuth},
        settings::{SETTINGS_AGE_MAX, Settings, SettingsCache},
    },
    base::ambient::Ambient,
    hosting::{game_server::GameServers, launching::Order},
    models::{
        errors::Error,
        ids::{ServerId, StartId},
        token::TokenKind,
    },
    rules::registration::Registration,
    store::client::Store,
};
use tokio::time::{Instant, sleep_until};

use harness::instance::request;

/// Places for every lobby that the scenario fills.
const PLACES_PER_LOBBY: f64 = 1.5;
/// Places of one server.
const PLACES: std::ops::RangeInclusive<u32> = 20..=100;
/// A server's lease.
const LEASE_SECS: u64 = 30;
/// Heartbeats of one lease.
const HEARTBEATS_PER_LEASE: u64 = 2;

/// One game server's way to the matchmaker.
pub struct GameServer {
    auth: MatchmakerAuth,
    servers: GameServers,
    token: String,
    id: ServerId,
    start_id: Option<StartId>,
    build: Option<String>,
    region: String,
}

/// How many places each server of a fleet for `lobbies` has.
#[must_use]
pub fn sizes(lobbies: f64, random: &mut fastrand::Rng) -> Vec<u32> {
    let (mut sizes, mut places) = (Vec::new(), 0.0);
    while places < (lobbies * PLACES_PER_LOBBY).max(1.0) {
        let size = random.u32(PLACES);
        places += f64::from(size);
        sizes.push(size);
    }
    sizes
}

impl GameServer {
    /// The server `number`, with the server token of its namespace.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new(number: usize, store: Store, keys: &Arc<TokenKeys>, ambient: &Ambient, token: &str) -> Self {
        let settings = Arc::new(SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
        Self {
            auth: MatchmakerAuth::new(settings, Arc::clone(keys), ambient.clone()),
            servers: GameServers::new(store, ambient.clone()),
            token: token.to_owned(),
            id: format!("server-{number}").parse().expect("an identifier"),
            start_id: None,
            build: None,
            region: String::new(),
        }
    }

    /// One that runs the `build` of a version with servers on demand, and was not ordered.
    #[must_use]
    pub fn of_build(self, build: &str) -> Self {
        Self { build: Some(build.to_owned()), ..self }
    }

    /// The process of an `order`.
    pub fn ordered(order: &Order, store: Store, keys: &Arc<TokenKeys>, ambient: &Ambient) -> Self {
        let token = order.environment.get("MUSTER_SERVER_TOKEN").expect("a token");
        Self {
            id: order.server_id.clone(),
            start_id: Some(order.start_id.clone()),
            region: order.region_id.to_string(),
            ..Self::new(0, store, keys, ambient, token)
        }
    }

    /// Registers with what its order says, and sends heartbeats until it is to end.
    pub async fn run(self) {
        let mut register = Instant::now();
        while let Err(error) = self.try_to_register(&self.region, None).await {
            if matches!(error, Error::ServerNotFound) {
                return;
            }
            register += Duration::from_secs(1);
            sleep_until(register).await;
        }
        let mut next = Instant::now();
        loop {
            match self.heartbeat().await {
                Ok(true) | Err(Error::ServerNotFound | Error::OtherStart) => return,
                Ok(false) | Err(_) => {}
            }
            next += Duration::from_secs(LEASE_SECS / HEARTBEATS_PER_LEASE);
            sleep_until(next).await;
        }
    }

    /// Registers it for `places` lobbies in `region`.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn register(&self, region: &str, places: u32) {
        self.try_to_register(region, Some(places)).await.expect("registered");
    }

    async fn try_to_register(&self, region: &str, places: Option<u32>) -> Result<(), Error> {
        let port = json!({ "hostname": format!("{}.example", self.id), "port": 7_777, "protocol": "udp" });
        let body = json!({ "server_id": self.id, "start_id": self.start_id, "region_id": region, "capacity": places,
            "lease_seconds": LEASE_SECS, "build": self.build, "ports": { "default": port } });
        let request = serde_json::from_value(body).expect("a registration");
        let (right, settings) = self.right().await?;
        let registration = Registration::check(&request, &settings.game, None).expect("a registration");
        self.servers
            .register(&right, Some(self.id.clone()), &registration, &settings)
            .await
            .map(|_registered| ())
    }

    /// Sends two heartbeats per lease, without end, from `first` on.
    pub async fn send_heartbeats(self, first: Instant) {
        let mut next = first;
        loop {
            sleep_until(next).await;
            // The next heartbeat makes up for a failure.
            let _sent = self.heartbeat().await;
            next += Duration::from_secs(LEASE_SECS / HEARTBEATS_PER_LEASE);
        }
    }

    /// Returns whether it is to end.
    async fn heartbeat(&self) -> Result<bool, Error> {
        let (right, _settings) = self.right().await?;
        let mut cursor = None;
        loop {
            let of = (self.id.clone(), self.start_id.as_ref());
            let response = self.servers.heartbeat(&right, of, cursor.as_ref()).await?;
            if response.server.is_stopping() {
                return Ok(true);
            }
            cursor = response.next;
            if cursor.is_none() {
                return Ok(false);
            }
        }
    }

    async fn right(&self) -> Result<(GameServerRight, Arc<Settings>), Error> {
        let request = request(&[("authorization", &format!("Bearer {}", self.token))], &json!({}));
        let caller = self.auth.caller(&request, TokenKind::Server)?;
        self.auth.game_server(caller).await
    }
}

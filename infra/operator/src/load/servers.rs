//! The game servers of a load: they register, learn of their lobbies by heartbeats, and leave nothing behind.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use shared::{base::ambient::Ambient, wire::JoinLobby};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use crate::load::{
    cost,
    plan::{HEARTBEAT, HEARTBEAT_GAP, LEASE, Plan},
    service::Service,
    tally::Call,
};

/// The beginning of their identifiers: other servers of a namespace are not of a load.
pub(crate) const PREFIX: &str = "load-";
/// Label of the port by which the server of a lobby is known.
const PORT: &str = "default";
/// How often a player looks for its lobby, and how long it waits each time: the list of a heartbeat may lag
/// behind a lobby's creation by two seconds.
const LOOKS: u32 = 4;
const LOOK: Duration = HEARTBEAT_GAP;

/// A lobby's token.
type LobbyToken = Arc<str>;

/// The game servers of one load.
pub(crate) struct Servers {
    service: Arc<Service>,
    /// The name of the load, in the identifiers and host names of its servers.
    run: String,
    servers: Vec<Arc<Server>>,
}

struct Server {
    server_id: String,
    start_id: String,
    /// Its lobbies by identifier, as the last heartbeat listed them.
    lobbies: watch::Sender<HashMap<String, LobbyToken>>,
    /// Notified by a player of a lobby that is not listed.
    wanted: Notify,
}

/// The response to a heartbeat.
#[derive(Deserialize)]
struct Heartbeat {
    cursor: Option<String>,
    lobbies: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    lobby_id: String,
    lobby_token: String,
}

impl Servers {
    /// The servers of a plan, not yet registered.
    pub fn new(plan: &Plan, service: Arc<Service>, ambient: &Ambient) -> Self {
        let run = ambient.bytes::<4>().map(|byte| format!("{byte:02x}")).concat();
        let server = |number: u32| {
            Arc::new(Server {
                server_id: format!("{PREFIX}{run}-{number}"),
                start_id: ambient.uuid().to_string(),
                lobbies: watch::Sender::default(),
                wanted: Notify::new(),
            })
        };
        let servers = (1..=plan.servers).map(server).collect();
        Self { service, run, servers }
    }

    /// Registers all, one after the other while it is not over, and begins the heartbeats of each.
    ///
    /// # Errors
    /// The result of the first registration that fails for good.
    pub async fn register(
        &self,
        plan: &Plan,
        heartbeats: &mut JoinSet<()>,
        is_over: impl Fn() -> bool,
    ) -> Result<(), String> {
        for (port, server) in (1_u32..).zip(&self.servers) {
            if is_over() {
                break;
            }
            let body = json!({
                "server_id": server.server_id, "start_id": server.start_id, "region_id": plan.region,
                "game_modes": [plan.mode], "capacity": plan.lobbies_per_server, "lease_seconds": LEASE.as_secs(),
                "ports": { PORT: { "hostname": self.hostname(), "port": port, "protocol": "udp" } },
            });
            self.service.insist(Call::Register, &body, cost::REGISTER).await?;
            heartbeats.spawn(Arc::clone(server).send_heartbeats(Arc::clone(&self.service)));
        }
        Ok(())
    }

    /// The token of a lobby; `None` when no heartbeat lists it.
    ///
    /// # Errors
    /// [`Elsewhere`] when another game server runs it.
    pub async fn token_of(&self, lobby: &JoinLobby) -> Result<Option<LobbyToken>, Elsewhere> {
        let port = lobby.ports.get(PORT).filter(|port| port.hostname == self.hostname());
        let number = port.and_then(|port| port.port).ok_or(Elsewhere)?;
        let server = usize::from(number).checked_sub(1).and_then(|index| self.servers.get(index));
        let server = server.ok_or(Elsewhere)?;
        let mut lobbies = server.lobbies.subscribe();
        let id = lobby.lobby_id.as_str();
        for _ in 0..LOOKS {
            if let Some(token) = lobbies.borrow().get(id) {
                return Ok(Some(Arc::clone(token)));
            }
            server.wanted.notify_one();
            let listed = timeout(LOOK, lobbies.wait_for(|lobbies| lobbies.contains_key(id))).await;
            if let Ok(Ok(lobbies)) = listed {
                return Ok(lobbies.get(id).cloned());
            }
        }
        Ok(None)
    }

    /// Deregisters all with their lobbies. Returns those that still are there, in words.
    pub async fn leave(&self) -> Vec<String> {
        let mut leaving = JoinSet::new();
        for server in &self.servers {
            leaving.spawn(Arc::clone(server).leave(Arc::clone(&self.service)));
        }
        leaving.join_all().await.into_iter().flatten().collect()
    }

    /// No player reaches a host of this name.
    fn hostname(&self) -> String {
        format!("{PREFIX}{}.invalid", self.run)
    }
}

/// Another game server runs the lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere;

impl Server {
    /// Sends heartbeats, sooner when a player wants one.
    async fn send_heartbeats(self: Arc<Self>, service: Arc<Service>) {
        loop {
            let _wanted_or_due = timeout(HEARTBEAT, self.wanted.notified()).await;
            let began = Instant::now();
            self.renew(&service).await;
            sleep_until(began + HEARTBEAT_GAP).await;
        }
    }

    /// Renews its lease and those of its lobbies, and updates the list. The next heartbeat makes up for a
    /// failure.
    async fn renew(&self, service: &Service) {
        let (mut cursor, mut lobbies) = (None, HashMap::new());
        loop {
            let body = json!({ "server_id": self.server_id, "start_id": self.start_id, "cursor": cursor });
            let spent = |page: &Heartbeat| cost::heartbeat(page.lobbies.len());
            let Ok(page) = service.as_server(Call::Heartbeat, &body, spent).await else { return };
            let listed = page.lobbies.into_iter();
            lobbies.extend(listed.map(|lobby| (lobby.lobby_id, lobby.lobby_token.into())));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        self.lobbies.send_replace(lobbies);
    }

    /// Deregisters, and ends its lobbies. Returns its name if that fails.
    async fn leave(self: Arc<Self>, service: Arc<Service>) -> Option<String> {
        let body = json!({ "server_id": self.server_id, "start_id": self.start_id, "end_lobbies": true });
        let takes = cost::deregister(self.lobbies.borrow().len());
        match service.insist(Call::Deregister, &body, takes).await {
            // It never registered, or an earlier try succeeded.
            Err(result) if !result.ends_with("MATCHMAKER_SERVER_NOT_FOUND") => Some(self.server_id.clone()),
            _ => None,
        }
    }
}

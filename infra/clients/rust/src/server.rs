//! A game server: registers, renews its lease, learns of its lobbies and admits their players.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    api::{HeartbeatResponse, RegisterServerRequest, RegisterServerResponse, ServerPort},
    error::Error,
    http::{Call, DEADLINE, LONG_ATTEMPT, World, send},
    muster::http_client,
};

pub use lobby::{Lobby, Player};

mod lobby;

const LEASE_LEAST: Duration = Duration::from_secs(30);
const HEARTBEATS_PER_LEASE: u32 = 3;
/// Leases without an accepted heartbeat after which a server on demand stops: its lobbies are gone by then.
const LEASES_WITHOUT_HEARTBEAT: u32 = 3;
/// How long the list of a heartbeat may lag behind the creation of a lobby.
const LAG: Duration = Duration::from_secs(2);
/// Pauses between looks for a lobby whose player arrives before it is listed.
const LOOKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// The least time between two such looks, however many players arrive.
const LOOK_PAUSE: Duration = Duration::from_millis(250);
const SERVER_NOT_FOUND: &str = "MATCHMAKER_SERVER_NOT_FOUND";

/// What a game server registers.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The API's address.
    pub url: String,
    /// The namespace's server token. Never ship it with a client.
    pub token: String,
    /// Its region.
    pub region: String,
    /// What players connect to, by label.
    pub ports: BTreeMap<String, ServerPort>,
    /// Lobbies that it runs at once; 1 by default.
    pub capacity: u32,
    /// Modes that it runs; all when empty.
    pub game_modes: Vec<String>,
    /// Names the server over restarts; without it, its address does.
    pub server_id: Option<String>,
    /// Names a start of the process whose matches survive a crash: the same as before it. A new one without
    /// it.
    pub start_id: Option<String>,
    /// For how long players may come back after a crash, with `start_id`; two minutes by default.
    pub keep: Duration,
    /// Between heartbeats; 30 seconds by default. The lease is three times that, and at least 30 seconds.
    pub heartbeat: Duration,
    /// Whether lobbies are ready at once; by default. Without it, `heartbeat` has to be short.
    pub auto_ready: bool,
    /// The build that it runs, where it is started by hand for versions whose `servers` name it.
    pub build: Option<Value>,
    /// Whether Muster had this process started, with `server_id` and `start_id`: it stops when Muster wants
    /// it no more, knows it no more, or accepts no heartbeat for three leases.
    pub is_on_demand: bool,
}

impl ServerOptions {
    /// One lobby at a time, of any mode.
    #[must_use]
    pub fn new(url: &str, token: &str, region: &str, ports: BTreeMap<String, ServerPort>) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            region: region.to_owned(),
            ports,
            capacity: 1,
            game_modes: Vec::new(),
            server_id: None,
            start_id: None,
            keep: Duration::from_secs(120),
            heartbeat: Duration::from_secs(30),
            auto_ready: true,
            build: None,
            is_on_demand: false,
        }
    }

    /// The server that Muster had this process started as, by its environment; `None` unless it did. Players
    /// connect to `ports`.
    #[must_use]
    pub fn on_demand(ports: BTreeMap<String, ServerPort>) -> Option<Self> {
        let variable = |name: &str| std::env::var(format!("MUSTER_{name}")).ok();
        let [url, token, region] = ["API_URL", "SERVER_TOKEN", "REGION_ID"].map(variable);
        let (server_id, start_id) = (Some(variable("SERVER_ID")?), Some(variable("START_ID")?));
        let lease =
            variable("LEASE_SECONDS").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        Some(Self {
            capacity: variable("CAPACITY").and_then(|count| count.parse().ok()).unwrap_or(1),
            server_id,
            start_id,
            heartbeat: lease.unwrap_or(LEASE_LEAST) / HEARTBEATS_PER_LEASE,
            is_on_demand: true,
            ..Self::new(&url?, &token?, &region?, ports)
        })
    }
}

/// What happens to a game server.
#[derive(Debug)]
pub enum Event {
    /// A lobby to run.
    Lobby(Lobby),
    /// A lobby that has ended.
    Ended(Lobby),
    /// The server is deregistered and has no lobby any more, or Muster had it started and wants it no more:
    /// the process is to end.
    Stopped,
    /// A later start of the server has registered, so this process is to end.
    Replaced(Error),
    /// A call failed; one without a response is repeated by the next heartbeat.
    Failed(Error),
}

/// A game server. Clones are the same server, which goes on until it [drains](Self::drain) or
/// [stops](Self::stop).
#[derive(Clone)]
pub struct GameServer {
    inner: Arc<Inner>,
}

struct Inner {
    options: ServerOptions,
    world: World,
    start_id: String,
    server_id: Mutex<String>,
    lobbies: Mutex<HashMap<String, Lobby>>,
    events: mpsc::UnboundedSender<Event>,
    /// When the last heartbeat began. Locked during one, so that no response undoes a later one.
    beat_at: tokio::sync::Mutex<Option<Instant>>,
    /// When the last accepted heartbeat began.
    accepted_at: Mutex<Instant>,
    /// Whether an earlier process of the same start had these lobbies, whose connections are gone.
    is_returning: AtomicBool,
    is_stopping: AtomicBool,
    over: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GameServer {
    /// Registers, and from then on sends heartbeats; returns the server and what happens to it. Listen for
    /// players before.
    ///
    /// # Errors
    /// [`Error`], where the registration is refused, or gets no response within a minute.
    pub async fn start(options: ServerOptions) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let world = World { transport: Arc::new(http_client()), pace: 1 };
        Self::start_in(world, options).await
    }

    pub(crate) async fn start_in(
        world: World,
        options: ServerOptions,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let (events, received) = mpsc::unbounded_channel();
        let is_returning = AtomicBool::new(options.start_id.is_some() && !options.is_on_demand);
        let start_id = options.start_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let server = Self {
            inner: Arc::new(Inner {
                options,
                world,
                start_id,
                server_id: Mutex::default(),
                lobbies: Mutex::default(),
                events,
                beat_at: tokio::sync::Mutex::default(),
                accepted_at: Mutex::new(Instant::now()),
                is_returning,
                is_stopping: AtomicBool::new(false),
                over: CancellationToken::new(),
            }),
        };
        server.register(DEADLINE).await?;
        server.beat().await?;
        tokio::spawn(server.clone().run());
        Ok((server, received))
    }

    /// Its identifier in the namespace.
    #[must_use]
    pub fn id(&self) -> String {
        lock(&self.inner.server_id).clone()
    }

    /// The lobbies that run.
    #[must_use]
    pub fn lobbies(&self) -> Vec<Lobby> {
        lock(&self.inner.lobbies).values().cloned().collect()
    }

    /// Admits a player who shows lobby and token: looks for a lobby that is too young to be listed, and
    /// reports the player connected.
    ///
    /// # Errors
    /// [`Error`], where the player is to be refused, by its code; [`Error::is_transient`] where Muster cannot
    /// say.
    pub async fn admit(&self, lobby_id: &str, token: &str) -> Result<Player, Error> {
        for pause in LOOKS {
            if self.has(lobby_id) || self.is_over() {
                break;
            }
            sleep(pause).await;
            self.look_for(lobby_id).await?;
        }
        let lobby = lock(&self.inner.lobbies).get(lobby_id).cloned();
        let unknown =
            || Error::refused("MATCHMAKER_LOBBY_NOT_FOUND", "the game server does not run this lobby");
        lobby.ok_or_else(unknown)?.admit(token).await
    }

    /// Sends a heartbeat now. During another one it is the next, for all who ask meanwhile.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn beat(&self) -> Result<(), Error> {
        let asked_at = Instant::now();
        let mut beat_at = self.inner.beat_at.lock().await;
        if beat_at.is_some_and(|began| began > asked_at) {
            return Ok(());
        }
        if self.is_over() {
            return Ok(());
        }
        *beat_at = Some(Instant::now());
        self.heartbeat().await
    }

    /// Deregisters: no new lobbies come. [`Event::Stopped`] comes when the last lobby has ended.
    ///
    /// # Errors
    /// [`Error`]: then the lease expires by itself.
    pub async fn drain(&self) -> Result<(), Error> {
        self.deregister(false).await?;
        // It is gone at once if it runs no lobby.
        self.beat_soon();
        Ok(())
    }

    /// Deregisters, and ends its lobbies.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub async fn stop(&self) -> Result<(), Error> {
        self.deregister(true).await?;
        self.finish();
        Ok(())
    }

    async fn deregister(&self, end_lobbies: bool) -> Result<(), Error> {
        self.inner.is_stopping.store(true, Ordering::Relaxed);
        match self.servers::<Value>("deregister", json!({ "end_lobbies": end_lobbies })).await {
            Err(error) if error.is(SERVER_NOT_FOUND) => self.finish(),
            answer => drop(answer?),
        }
        Ok(())
    }

    async fn run(self) {
        loop {
            tokio::select! {
                () = self.inner.over.cancelled() => return,
                () = sleep(self.inner.options.heartbeat) => self.beat_and_report().await,
            }
        }
    }

    async fn beat_and_report(&self) {
        if let Err(error) = self.beat().await {
            self.tell(Event::Failed(error));
            let Inner { options, accepted_at, .. } = &*self.inner;
            if options.is_on_demand && lock(accepted_at).elapsed() >= self.lease() * LEASES_WITHOUT_HEARTBEAT
            {
                self.finish();
            }
        }
    }

    fn lease(&self) -> Duration {
        LEASE_LEAST.max(self.inner.options.heartbeat * HEARTBEATS_PER_LEASE)
    }

    /// Sends a heartbeat in the background.
    pub(crate) fn beat_soon(&self) {
        let server = self.clone();
        tokio::spawn(async move { server.beat_and_report().await });
    }

    async fn register(&self, deadline: Duration) -> Result<(), Error> {
        let ServerOptions {
            token, region, ports, capacity, game_modes, server_id, auto_ready, build, ..
        } = &self.inner.options;
        let body = RegisterServerRequest {
            server_id: server_id.clone(),
            start_id: self.inner.start_id.clone(),
            region_id: region.clone(),
            game_modes: game_modes.clone(),
            capacity: *capacity,
            ports: ports.clone(),
            lease_seconds: self.lease().as_secs(),
            auto_ready: *auto_ready,
            build: build.clone(),
        };
        let registered: RegisterServerResponse =
            self.call(Method::POST, "servers/register", token, &body, deadline).await?;
        *lock(&self.inner.server_id) = registered.server_id;
        Ok(())
    }

    /// Renews the leases of server and lobbies, page by page, and notes which lobbies there are.
    async fn heartbeat(&self) -> Result<(), Error> {
        let began = Instant::now();
        let mut listed = HashSet::new();
        let mut cursor = None;
        loop {
            let page: HeartbeatResponse = match self.servers("heartbeat", json!({ "cursor": cursor })).await {
                Err(error) if error.is(SERVER_NOT_FOUND) => self.forgotten().await?,
                page => page?,
            };
            for assigned in page.lobbies {
                listed.insert(assigned.lobby_id.clone());
                let known = lock(&self.inner.lobbies).get(&assigned.lobby_id).cloned();
                match known {
                    Some(lobby) => lobby.update(assigned),
                    None => self.open(Lobby::new(self.clone(), assigned)).await?,
                }
            }
            // The operator may have deregistered it, too.
            self.inner.is_stopping.fetch_or(page.draining, Ordering::Relaxed);
            if page.stop {
                self.finish();
                return Ok(());
            }
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        *lock(&self.inner.accepted_at) = began;
        self.inner.is_returning.store(false, Ordering::Relaxed);
        for lobby in self.lobbies() {
            // A young one with players may only be missing. Without players nothing is lost by a mistake.
            let may_live = lobby.player_count() > 0 && lobby.since() + LAG >= began;
            if !listed.contains(lobby.id()) && !may_live {
                self.ended(&lobby);
            }
        }
        Ok(())
    }

    /// Whom the service does not know has drained, was given up, or registers again. Either way its lobbies
    /// are gone.
    async fn forgotten(&self) -> Result<HeartbeatResponse, Error> {
        if self.inner.is_stopping.load(Ordering::Relaxed) || self.inner.options.is_on_demand {
            self.finish();
        } else {
            match self.register(self.inner.options.heartbeat).await {
                Err(error) if error.is("MATCHMAKER_LOBBY_STATE_CONFLICT") => {
                    self.close();
                    self.tell(Event::Replaced(error));
                }
                registered => registered?,
            }
        }
        Ok(HeartbeatResponse::default())
    }

    async fn open(&self, lobby: Lobby) -> Result<(), Error> {
        if self.inner.is_returning.load(Ordering::Relaxed) {
            lobby.keep_everyone(self.inner.options.keep).await?;
        }
        lock(&self.inner.lobbies).insert(lobby.id().to_owned(), lobby.clone());
        self.tell(Event::Lobby(lobby));
        Ok(())
    }

    /// A heartbeat for all who arrive meanwhile, not too soon after the last one.
    async fn look_for(&self, lobby_id: &str) -> Result<(), Error> {
        let mut beat_at = self.inner.beat_at.lock().await;
        if self.has(lobby_id) {
            return Ok(());
        }
        if let Some(last) = *beat_at {
            tokio::time::sleep_until(last + LOOK_PAUSE).await;
        }
        *beat_at = Some(Instant::now());
        self.heartbeat().await
    }

    pub(crate) async fn end_lobby(&self, lobby: &Lobby) -> Result<(), Error> {
        let (token, body) = (&self.inner.options.token, json!({ "lobby_id": lobby.id() }));
        let _empty: Value = self.call(Method::POST, "servers/end-lobby", token, &body, DEADLINE).await?;
        self.ended(lobby);
        if self.inner.is_stopping.load(Ordering::Relaxed) {
            self.beat().await?;
        }
        Ok(())
    }

    fn has(&self, lobby_id: &str) -> bool {
        lock(&self.inner.lobbies).contains_key(lobby_id)
    }

    fn ended(&self, lobby: &Lobby) {
        lock(&self.inner.lobbies).remove(lobby.id());
        if lobby.note_end() {
            self.tell(Event::Ended(lobby.clone()));
        }
    }

    fn is_over(&self) -> bool {
        self.inner.over.is_cancelled()
    }

    fn close(&self) {
        for lobby in self.lobbies() {
            self.ended(&lobby);
        }
        self.inner.over.cancel();
    }

    fn finish(&self) {
        if !self.is_over() {
            self.close();
            self.tell(Event::Stopped);
        }
    }

    /// The application may have dropped the receiver.
    fn tell(&self, event: Event) {
        let _nobody_listens = self.inner.events.send(event);
    }

    async fn servers<T: DeserializeOwned>(&self, operation: &str, mut body: Value) -> Result<T, Error> {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("server_id".to_owned(), self.id().into());
            fields.insert("start_id".to_owned(), self.inner.start_id.as_str().into());
        }
        let Inner { options: ServerOptions { token, heartbeat, .. }, .. } = &*self.inner;
        self.call(Method::POST, &format!("servers/{operation}"), token, &body, *heartbeat).await
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: &impl Serialize,
        deadline: Duration,
    ) -> Result<T, Error> {
        let call = Call::send(method, format!("{}/matchmaker/{path}", self.inner.options.url), body)?;
        let call = Call { token: Some(token.to_owned()), attempt: LONG_ATTEMPT, ..call };
        send(&self.inner.world, &call, deadline).await
    }
}

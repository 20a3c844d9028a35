//! A game server: registers, renews its lease, learns of its lobbies and admits their players.

use std::{
    collections::{BTreeMap, HashSet},
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
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    api::{HeartbeatResponse, RegisterServerRequest, RegisterServerResponse, ServerPort},
    error::Error,
    http::{Call, DEADLINE, LONG_ATTEMPT, World, send},
    muster::http_client,
};

use lobby::unless_over;
pub use lobby::{Lobby, Player};

mod lobby;
#[cfg(test)]
mod tests;

const LEASE_LEAST: Duration = Duration::from_secs(30);
const HEARTBEATS_PER_LEASE: u32 = 3;
/// Leases without an accepted heartbeat after which a server on demand stops: its lobbies are gone by then.
const LEASES_WITHOUT_HEARTBEAT: u32 = 3;
/// How long the list of a heartbeat may lag behind the creation of a lobby.
const LAG: Duration = Duration::from_secs(2);
/// Pauses between looks for a lobby whose player arrives before it is listed.
const LOOKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// The pause between heartbeats of a server that drains and has no lobby left: Muster forgets it a moment
/// after the last one's end.
const LAST_PAUSE: Duration = Duration::from_secs(1);
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
    /// Between heartbeats while a lobby may come; 30 seconds by default. A server that has all its lobbies,
    /// or drains, sends three per lease.
    pub heartbeat: Duration,
    /// For how long Muster counts the server as alive after a heartbeat; by default three times the time
    /// between them, and at least 30 seconds.
    pub lease: Option<Duration>,
    /// How long the registration may take, repetitions included; a minute by default.
    pub deadline: Duration,
    /// An HTTP client of the application's, which several servers may share; [`http_client`] without it.
    pub http: Option<reqwest::Client>,
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
            lease: None,
            deadline: DEADLINE,
            http: None,
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

    /// The lease, whether it is given or follows from `heartbeat`.
    #[must_use]
    pub fn lease_or_default(&self) -> Duration {
        self.lease.unwrap_or_else(|| LEASE_LEAST.max(self.heartbeat * HEARTBEATS_PER_LEASE))
    }

    /// The time between heartbeats that the lease needs, and for which a call that keeps it is repeated.
    fn pulse(&self) -> Duration {
        self.lease_or_default() / HEARTBEATS_PER_LEASE
    }
}

/// What happens to a game server.
#[derive(Debug)]
pub enum Event {
    /// A lobby to run.
    Lobby(Lobby),
    /// A lobby that has ended.
    Ended(Lobby),
    /// The server has registered again, because Muster did not know it any more. Its lobbies have ended.
    Registered,
    /// The server is deregistered and has no lobby any more, or Muster had it started and wants it no more:
    /// the process is to end.
    Stopped,
    /// A later start of the server has registered, so this process is to end.
    Replaced(Error),
    /// A call failed; one without a response is repeated by the next heartbeat.
    Failed(Error),
}

/// A game server. Clones are the same server, which goes on until it [drains](Self::drain),
/// [stops](Self::stop) or [closes](Self::close).
#[derive(Clone)]
pub struct GameServer {
    inner: Arc<Inner>,
}

struct Inner {
    options: ServerOptions,
    world: World,
    start_id: String,
    server_id: Mutex<String>,
    lobbies: Mutex<BTreeMap<String, Lobby>>,
    /// Notified when a lobby has ended: another may come in its place.
    freed: Notify,
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
    /// [`Error`], where the registration is refused, or gets no response before the deadline.
    pub async fn start(options: ServerOptions) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let http = options.http.clone().unwrap_or_else(http_client);
        Self::start_in(Arc::new(http), options).await
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
                freed: Notify::new(),
                events,
                beat_at: tokio::sync::Mutex::default(),
                accepted_at: Mutex::new(Instant::now()),
                is_returning,
                is_stopping: AtomicBool::new(false),
                over: CancellationToken::new(),
            }),
        };
        server.register(server.inner.options.deadline).await?;
        server.beat().await?;
        tokio::spawn(server.clone().run());
        Ok((server, received))
    }

    /// Its identifier in the namespace.
    #[must_use]
    pub fn id(&self) -> String {
        lock(&self.inner.server_id).clone()
    }

    /// The lobbies that run, by their identifiers.
    #[must_use]
    pub fn lobbies(&self) -> Vec<Lobby> {
        lock(&self.inner.lobbies).values().cloned().collect()
    }

    /// Whether it is deregistered, by itself or by an operator, so that no new lobbies come.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.is_stopping.load(Ordering::Relaxed)
    }

    /// When the last heartbeat began that was accepted. After three leases without one its lobbies are gone.
    #[must_use]
    pub fn accepted_at(&self) -> Instant {
        *lock(&self.inner.accepted_at)
    }

    /// A lobby that runs. Looks for one that is too young to be listed.
    ///
    /// # Errors
    /// `MATCHMAKER_LOBBY_NOT_FOUND`, where it does not run here; [`Error::is_transient`] where Muster cannot
    /// say.
    pub async fn lobby(&self, lobby_id: &str) -> Result<Lobby, Error> {
        for pause in LOOKS {
            if self.has(lobby_id) || self.is_over() {
                break;
            }
            sleep(pause).await;
            self.look_for(lobby_id).await?;
        }
        let lobby = lock(&self.inner.lobbies).get(lobby_id).cloned();
        lobby.ok_or_else(|| {
            Error::refused("MATCHMAKER_LOBBY_NOT_FOUND", "the game server does not run this lobby")
        })
    }

    /// Admits a player who shows lobby and token: looks for the [lobby](Self::lobby), and reports the player
    /// connected.
    ///
    /// # Errors
    /// [`Error`], where the player is to be refused, by its code; [`Error::is_transient`] where Muster cannot
    /// say.
    pub async fn admit(&self, lobby_id: &str, token: &str) -> Result<Player, Error> {
        self.lobby(lobby_id).await?.admit(token).await
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

    /// Ends at once, without a call of Muster, which ends its lobbies when the lease expires: they have ended
    /// here, and no heartbeat follows.
    pub fn close(&self) {
        for lobby in self.lobbies() {
            self.ended(&lobby);
        }
        self.inner.over.cancel();
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
                () = self.due() => self.beat_and_report().await,
            }
        }
    }

    /// Returns when another heartbeat is due.
    async fn due(&self) {
        let Inner { options, freed, beat_at, .. } = &*self.inner;
        loop {
            let last = beat_at.lock().await.unwrap_or_else(Instant::now);
            let lobbies = lock(&self.inner.lobbies).len();
            let pause = match (self.is_draining(), lobbies) {
                (true, 0) => LAST_PAUSE.min(options.pulse()),
                (false, lobbies) if lobbies < options.capacity as usize => {
                    options.heartbeat.min(options.pulse())
                }
                _ => options.pulse(),
            };
            if last.elapsed() >= pause {
                return;
            }
            tokio::select! {
                () = sleep_until(last + pause) => {}
                () = freed.notified() => {}
            }
        }
    }

    async fn beat_and_report(&self) {
        if let Err(error) = self.beat().await {
            self.tell(Event::Failed(error));
            let options = &self.inner.options;
            let given_up_after = options.lease_or_default() * LEASES_WITHOUT_HEARTBEAT;
            if options.is_on_demand && self.accepted_at().elapsed() >= given_up_after {
                self.finish();
            }
        }
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
            lease_seconds: self.inner.options.lease_or_default().as_secs(),
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
        if self.is_draining() || self.inner.options.is_on_demand {
            self.finish();
        } else {
            match self.register(self.inner.options.pulse()).await {
                Err(error) if error.is("MATCHMAKER_LOBBY_STATE_CONFLICT") => {
                    self.close();
                    self.tell(Event::Replaced(error));
                }
                registered => {
                    registered?;
                    self.tell(Event::Registered);
                }
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
            sleep_until(last + LOOK_PAUSE).await;
        }
        *beat_at = Some(Instant::now());
        self.heartbeat().await
    }

    pub(crate) async fn end_lobby(&self, lobby: &Lobby) -> Result<(), Error> {
        let (token, body) = (&self.inner.options.token, json!({ "lobby_id": lobby.id() }));
        let ended = self.call::<Value>(Method::POST, "servers/end-lobby", token, &body, DEADLINE).await;
        unless_over(ended.map(drop))?;
        self.ended(lobby);
        if self.is_draining() {
            // That was perhaps the last one.
            self.beat_soon();
        }
        Ok(())
    }

    fn has(&self, lobby_id: &str) -> bool {
        lock(&self.inner.lobbies).contains_key(lobby_id)
    }

    fn ended(&self, lobby: &Lobby) {
        if lock(&self.inner.lobbies).remove(lobby.id()).is_some() {
            lobby.note_end();
            self.inner.freed.notify_one();
            self.tell(Event::Ended(lobby.clone()));
        }
    }

    fn is_over(&self) -> bool {
        self.inner.over.is_cancelled()
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
        let options = &self.inner.options;
        let path = format!("servers/{operation}");
        self.call(Method::POST, &path, &options.token, &body, options.pulse()).await
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

//! A game server that runs several lobbies, and is the lobby server of each: the part that a studio writes
//! itself.
//!
//! Players send lines over TCP. A player sends `<lobby_id> <player_token>` and gets `welcome <n> of <max>` or
//! `refused <code>`, then `start` when its lobby is full. It leaves by closing the connection.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy, sink},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, Notify, watch},
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};
use uuid::Uuid;

use crate::{
    client::{Client, ClientError},
    error::ExampleError,
    report::{Change, Events, Players},
    setup::{PORT, REGION},
};

/// Lobbies that the server runs at the same time.
const CAPACITY: u32 = 4;
/// Time between heartbeats. Each writes the lease of every lobby, so that half the time costs twice as much;
/// players of a new lobby cause one of their own, and wait for none.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// Heartbeats per lease: one may be late or lost before the leases of server and lobbies expire. A lobby of a
/// dead server is never found, and ends when a find needs its capacity.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// How long the list of a heartbeat may lag behind a lobby's creation, if the database is in AWS.
const LIST_LAG: Duration = Duration::from_secs(2);
/// Tries to find a new lobby in the list, and the pause between them.
const LOOKUPS: u32 = 5;
const LOOKUP_PAUSE: Duration = Duration::from_millis(200);
/// How long a player's first line may take, and its longest length in bytes.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
const GREETING_BYTES_MAX: u64 = 4_096;
/// The longest name of a player that is shown.
const NAME_CHARS_MAX: usize = 24;

/// The game server.
pub struct GameServer {
    /// The service, with the namespace's server token.
    service: Client,
    /// The same after restarts, so that a start ends the lobbies that a crashed process left behind.
    server_id: String,
    /// New in each process, so that late requests of an old process change nothing.
    start_id: String,
    /// Time between heartbeats.
    heartbeat: Duration,
    listener: TcpListener,
    is_draining: AtomicBool,
    /// Notified when the server drained and its last lobby ended.
    gone: Notify,
    /// Locked during a heartbeat, so that no response undoes a later one, and players of the same new lobby
    /// need only one.
    lobbies: Mutex<HashMap<String, Arc<Lobby>>>,
    events: Events,
}

/// The response to a heartbeat.
#[derive(Default, Deserialize)]
struct Heartbeat {
    cursor: Option<String>,
    lobbies: Vec<AssignedLobby>,
}

#[derive(Deserialize)]
struct AssignedLobby {
    lobby_id: String,
    lobby_token: String,
    max_players: u32,
}

/// The response to `connected` with details.
#[derive(Deserialize)]
struct Player {
    #[serde(default)]
    player_data: Value,
}

impl Player {
    /// The name that the player chose. The client may send anything, and nothing that others must not claim.
    fn name(&self) -> String {
        let name = self.player_data.get("name").and_then(Value::as_str).unwrap_or("a player");
        name.chars().filter(|character| !character.is_control()).take(NAME_CHARS_MAX).collect()
    }
}

impl GameServer {
    /// Listens on `port` and registers. From then on players may connect.
    pub async fn start(
        service: Client,
        server_id: &str,
        port: u16,
        heartbeat: Duration,
        events: Events,
    ) -> Result<Arc<Self>, ExampleError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(ExampleError::Listen)?;
        let address = listener.local_addr().map_err(ExampleError::Listen)?;
        let (server_id, start_id) = (server_id.to_owned(), Uuid::new_v4().to_string());
        let body = json!({
            "server_id": server_id,
            "start_id": start_id,
            "region_id": REGION,
            "capacity": CAPACITY,
            "lease_seconds": (heartbeat * HEARTBEATS_PER_LEASE).as_secs(),
            "ports": {
                PORT: { "hostname": address.ip().to_string(), "port": address.port(), "protocol": "tcp" },
            },
        });
        // 503 while lobbies of an earlier start have to end: the client retries, up to its limit.
        let _: IgnoredAny = service.post("/matchmaker/servers/register", body).await?;
        events.note(format!("game server registered, players come to {address}"));
        let (is_draining, gone, lobbies) = (AtomicBool::new(false), Notify::new(), Mutex::default());
        Ok(Arc::new(Self {
            service,
            server_id,
            start_id,
            heartbeat,
            listener,
            is_draining,
            gone,
            lobbies,
            events,
        }))
    }

    /// Runs lobbies until `until` is over, and drains for at most `limit`. On failure it ends every lobby.
    pub async fn run(
        self: &Arc<Self>,
        until: impl Future<Output = Result<(), ExampleError>>,
        limit: Duration,
    ) -> Result<(), ExampleError> {
        let leave = async {
            until.await?;
            self.drain().await?;
            sleep(limit).await;
            Err(ExampleError::Unfinished(limit))
        };
        let ended = tokio::select! {
            failed = self.welcome_players() => failed,
            failed = self.keep_lease() => failed.map_err(ExampleError::Service),
            () = self.gone.notified() => Ok(()),
            failed = leave => failed,
        };
        if ended.is_err() {
            // Finds must send no more players here. If this fails too, the lease expires.
            let _that_failed_too = self.deregister(true).await;
        }
        ended
    }

    /// Deregisters, to get no more lobbies. The others play on, and the server ends with the last.
    async fn drain(&self) -> Result<(), ClientError> {
        self.is_draining.store(true, Ordering::Relaxed);
        self.deregister(false).await?;
        self.events.note("game server deregistered, its players play on".to_owned());
        // The server is gone immediately if it has none.
        self.send_heartbeat().await
    }

    /// Deregisters the server, and ends its lobbies if the process ends immediately.
    async fn deregister(&self, end_lobbies: bool) -> Result<(), ClientError> {
        let Self { server_id, start_id, .. } = self;
        let body = json!({ "server_id": server_id, "start_id": start_id, "end_lobbies": end_lobbies });
        let _: IgnoredAny = self.service.post("/matchmaker/servers/deregister", body).await?;
        Ok(())
    }

    async fn keep_lease(&self) -> Result<(), ClientError> {
        let mut heartbeats = interval(self.heartbeat);
        loop {
            heartbeats.tick().await;
            self.send_heartbeat().await?;
        }
    }

    /// Sends a heartbeat. The next one makes up for a failure.
    async fn send_heartbeat(&self) -> Result<(), ClientError> {
        let mut lobbies = self.lobbies.lock().await;
        match timeout(self.heartbeat, self.heartbeat(&mut lobbies)).await {
            Ok(Err(error @ ClientError::Refused { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    /// Renews the leases of the server and its lobbies, and updates the list of lobbies.
    async fn heartbeat(&self, lobbies: &mut HashMap<String, Arc<Lobby>>) -> Result<(), ClientError> {
        let mut listed = BTreeSet::new();
        let mut cursor = None;
        loop {
            let Self { server_id, start_id, .. } = self;
            let body = json!({ "server_id": server_id, "start_id": start_id, "cursor": cursor });
            let page: Heartbeat = match self.service.post("/matchmaker/servers/heartbeat", body).await {
                Err(error) if self.is_gone(&error) => {
                    self.gone.notify_one();
                    Heartbeat::default()
                }
                page => page?,
            };
            for AssignedLobby { lobby_id, lobby_token, max_players } in page.lobbies {
                lobbies.entry(lobby_id.clone()).or_insert_with(|| {
                    let service = self.service.with_token(lobby_token);
                    Arc::new(Lobby::open(lobby_id.clone(), service, max_players, self.events.clone()))
                });
                listed.insert(lobby_id);
            }
            // A page has at most 100 lobbies and renews their leases.
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        // Lobbies that are no longer listed have ended.
        for (_, lobby) in lobbies.extract_if(|id, lobby| !listed.contains(id) && !lobby.may_be_missed()) {
            lobby.end();
        }
        Ok(())
    }

    /// Whether that is the response after the last lobby of a draining server ended.
    fn is_gone(&self, error: &ClientError) -> bool {
        self.is_draining.load(Ordering::Relaxed) && error.code() == Some("MATCHMAKER_SERVER_NOT_FOUND")
    }

    /// The lobby. If it was created after the last heartbeat, another heartbeat lists it.
    async fn lobby(&self, lobby_id: &str) -> Result<Option<Arc<Lobby>>, ClientError> {
        for _ in 0..LOOKUPS {
            let mut lobbies = self.lobbies.lock().await;
            if !lobbies.contains_key(lobby_id) {
                self.heartbeat(&mut lobbies).await?;
            }
            if let Some(lobby) = lobbies.get(lobby_id) {
                return Ok(Some(Arc::clone(lobby)));
            }
            drop(lobbies);
            sleep(LOOKUP_PAUSE).await;
        }
        Ok(None)
    }

    async fn welcome_players(self: &Arc<Self>) -> Result<(), ExampleError> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.map_err(ExampleError::Listen)?;
                    connections.spawn(Arc::clone(self).serve(stream));
                }
                Some(ended) = connections.join_next() => ended??,
            }
        }
    }

    /// Serves a player from the first line to the end. Only the service's failures are errors here.
    async fn serve(self: Arc<Self>, stream: TcpStream) -> Result<(), ClientError> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let Some((lobby_id, player_token)) = greeting(&mut reader).await else {
            return Ok(());
        };
        let Some(lobby) = self.lobby(&lobby_id).await? else {
            refuse(&mut writer, "MATCHMAKER_LOBBY_NOT_FOUND").await;
            return Ok(());
        };
        let (name, players) = match lobby.connect(&player_token).await {
            Ok(connected) => connected,
            Err(ClientError::Refused { code, .. }) => {
                refuse(&mut writer, &code).await;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // From here on the player holds a seat, which the server gives back however the connection ends.
        if writer.write_all(format!("welcome {players}\n").as_bytes()).await.is_ok() {
            lobby.close_if_full().await?;
            lobby.play(&mut reader, &mut writer).await;
        }
        if lobby.disconnect(&player_token, name).await? == 0 {
            // Without players the lobby has ended, unless another player is on the way. A heartbeat shows
            // which.
            self.send_heartbeat().await?;
        }
        Ok(())
    }
}

/// Lobby and token in a player's first line; `None` if they are missing.
async fn greeting(reader: &mut BufReader<OwnedReadHalf>) -> Option<(String, String)> {
    let mut line = String::new();
    let mut bounded = reader.take(GREETING_BYTES_MAX);
    timeout(GREETING_TIMEOUT, bounded.read_line(&mut line)).await.ok()?.ok()?;
    let (lobby_id, player_token) = line.trim_end().split_once(' ')?;
    Some((lobby_id.to_owned(), player_token.to_owned()))
}

async fn refuse(writer: &mut OwnedWriteHalf, code: &str) {
    let _gone_already = writer.write_all(format!("refused {code}\n").as_bytes()).await;
}

/// A lobby that this server runs.
struct Lobby {
    lobby_id: String,
    /// The service, with the lobby's own token.
    service: Client,
    max_players: u32,
    /// Connected players. Locked during calls of the service, so that they are in order.
    connected: Mutex<u32>,
    stage: watch::Sender<Stage>,
    opened_at: Instant,
    events: Events,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Closed,
    Ended,
}

impl Lobby {
    fn open(lobby_id: String, service: Client, max_players: u32, events: Events) -> Self {
        events.of_lobby(&lobby_id, Change::Opened);
        let (connected, stage) = (Mutex::default(), watch::Sender::new(Stage::Open));
        Self { lobby_id, service, max_players, connected, stage, opened_at: Instant::now(), events }
    }

    /// Whether it may live although it is not listed: only with players. The next heartbeat corrects a
    /// mistake.
    fn may_be_missed(&self) -> bool {
        let is_empty = self.connected.try_lock().is_ok_and(|connected| *connected == 0);
        !is_empty && self.opened_at.elapsed() < LIST_LAG
    }

    /// Connects a player if the service accepts the token, and returns the player's name.
    async fn connect(&self, player_token: &str) -> Result<(String, Players), ClientError> {
        let mut connected = self.connected.lock().await;
        let body = json!({ "player_token": player_token, "details": true });
        let player: Player = self.service.post("/matchmaker/players/connected", body).await?;
        *connected += 1;
        Ok((player.name(), Players { connected: *connected, max: self.max_players }))
    }

    /// Frees the seat of the player `name`, and returns how many players remain.
    async fn disconnect(&self, player_token: &str, name: String) -> Result<u32, ClientError> {
        let mut connected = self.connected.lock().await;
        let body = json!({ "player_token": player_token });
        is_done(self.service.post("/matchmaker/players/disconnected", body).await)?;
        *connected -= 1;
        let players = Players { connected: *connected, max: self.max_players };
        self.events.of_lobby(&self.lobby_id, Change::Left(name, players));
        if *self.stage.borrow() == Stage::Closed && players.connected < players.max {
            self.set_closed(false).await?;
        }
        Ok(players.connected)
    }

    /// Closes the lobby when it is full, which starts the game. Until it reopens, finds do not fill seats
    /// that players left.
    async fn close_if_full(&self) -> Result<(), ClientError> {
        let connected = self.connected.lock().await;
        if *self.stage.borrow() == Stage::Open && *connected >= self.max_players {
            self.set_closed(true).await?;
        }
        Ok(())
    }

    async fn set_closed(&self, is_closed: bool) -> Result<(), ClientError> {
        let body = json!({ "is_closed": is_closed });
        if !is_done(self.service.put("/matchmaker/lobbies/closed", body).await)? {
            return Ok(());
        }
        self.stage.send_if_modified(|stage| {
            let lives = *stage != Stage::Ended;
            if lives {
                *stage = if is_closed { Stage::Closed } else { Stage::Open };
            }
            lives
        });
        let change = if is_closed { Change::Closed } else { Change::Reopened };
        self.events.of_lobby(&self.lobby_id, change);
        Ok(())
    }

    /// Plays with a connected player until the player leaves or the lobby ends.
    async fn play(&self, reader: &mut BufReader<OwnedReadHalf>, writer: &mut OwnedWriteHalf) {
        let mut stage = self.stage.subscribe();
        let game = async {
            stage.wait_for(|stage| *stage != Stage::Open).await.map_err(io::Error::other)?;
            writer.write_all(b"start\n").await?;
            stage.wait_for(|stage| *stage == Stage::Ended).await.map_err(io::Error::other)?;
            io::Result::Ok(())
        };
        // This game ignores further input.
        let mut ignored = sink();
        let until_it_leaves = copy(reader, &mut ignored);
        tokio::select! {
            _ = game => {}
            _ = until_it_leaves => {}
        }
    }

    fn end(&self) {
        self.stage.send_replace(Stage::Ended);
        self.events.of_lobby(&self.lobby_id, Change::Ended);
    }
}

/// Whether the call succeeded. It may fail because the lobby has ended, which an operator can do at any time,
/// or because it stays closed while the server drains.
fn is_done(answer: Result<IgnoredAny, ClientError>) -> Result<bool, ClientError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) => match error.code() {
            Some("MATCHMAKER_LOBBY_STOPPED" | "MATCHMAKER_LOBBY_STATE_CONFLICT") => Ok(false),
            _ => Err(error),
        },
    }
}

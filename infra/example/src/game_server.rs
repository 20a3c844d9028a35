//! A game server that runs several lobbies, each as its lobby server: what a studio writes itself.
//!
//! Players speak lines over TCP. One says `<lobby_id> <player_token>` and is told `welcome <n> of <max>` or
//! `refused <code>`, then `start` when its lobby is full; it leaves by closing the connection.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy, sink},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, watch},
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use crate::{
    ExampleError,
    client::{Client, ClientError},
    report::{Change, Events, Players},
    setup::{PORT, REGION},
};

/// Lobbies that the server runs at once.
const CAPACITY: u32 = 4;
/// How long the server is taken to live after each heartbeat.
const LEASE: Duration = Duration::from_secs(15);
/// Time between heartbeats: thrice a lease, so that one may come late or be lost, and the server and its lobbies are still
/// taken to live. A lobby of a dead server is never found, and ends when somebody needs its room.
const HEARTBEAT: Duration = Duration::from_secs(LEASE.as_secs() / 3);
/// How long the list of a heartbeat may lag behind a lobby's creation, where the database is not on this machine.
const LIST_LAG: Duration = Duration::from_secs(2);
/// Tries to learn of a new lobby, and the pause between them.
const LOOKUPS: u32 = 5;
const LOOKUP_PAUSE: Duration = Duration::from_millis(200);
/// How long a player may take to say who it is, and in how many bytes.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
const GREETING_BYTES_MAX: u64 = 4_096;

/// The game server.
pub struct GameServer {
    /// The service, with the namespace's server token.
    service: Client,
    server_id: String,
    /// Held during a heartbeat: an answer never undoes a later one's, and players of the same new lobby need only one.
    lobbies: Mutex<HashMap<String, Arc<Lobby>>>,
    events: Events,
}

#[derive(Deserialize)]
struct Registration {
    server_id: String,
}

/// What a heartbeat answers.
#[derive(Deserialize)]
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

impl GameServer {
    /// Registers a server whose players come to `address`.
    pub async fn register(
        service: Client,
        address: SocketAddr,
        events: Events,
    ) -> Result<Arc<Self>, ClientError> {
        let body = json!({
            "region_id": REGION,
            "capacity": CAPACITY,
            "lease_seconds": LEASE.as_secs(),
            "ports": {
                PORT: { "hostname": address.ip().to_string(), "port": address.port(), "protocol": "tcp" },
            },
        });
        let Registration { server_id } = service.post("/matchmaker/servers/register", body).await?;
        events.note(format!("game server registered, players come to {address}"));
        Ok(Arc::new(Self { service, server_id, lobbies: Mutex::default(), events }))
    }

    /// Lets players in and keeps the lease, until something fails.
    pub async fn run(self: &Arc<Self>, listener: TcpListener) -> Result<(), ExampleError> {
        tokio::select! {
            ended = self.welcome_players(listener) => ended,
            ended = self.keep_lease() => Ok(ended?),
        }
    }

    /// Gives the server's place up, and its lobbies with it: the process ends.
    pub async fn deregister(&self) -> Result<(), ClientError> {
        let body = json!({ "server_id": self.server_id, "end_lobbies": true });
        let _: IgnoredAny = self.service.post("/matchmaker/servers/deregister", body).await?;
        Ok(())
    }

    /// Waits until the service lists no lobby of this server.
    pub async fn until_every_lobby_ended(&self) -> Result<(), ClientError> {
        loop {
            let mut lobbies = self.lobbies.lock().await;
            self.heartbeat(&mut lobbies).await?;
            if lobbies.is_empty() {
                return Ok(());
            }
            drop(lobbies);
            sleep(LOOKUP_PAUSE).await;
        }
    }

    async fn keep_lease(&self) -> Result<(), ClientError> {
        let mut beats = interval(HEARTBEAT);
        loop {
            beats.tick().await;
            let mut lobbies = self.lobbies.lock().await;
            let answer = timeout(HEARTBEAT, self.heartbeat(&mut lobbies)).await;
            // What is lost the next one makes up for.
            if let Ok(Err(error @ ClientError::Refused { .. })) = answer {
                return Err(error);
            }
        }
    }

    /// Says that the server lives, which extends the leases of its lobbies too, and learns which those are.
    async fn heartbeat(&self, lobbies: &mut HashMap<String, Arc<Lobby>>) -> Result<(), ClientError> {
        let mut listed = BTreeSet::new();
        let mut cursor = None;
        loop {
            let body = json!({ "server_id": self.server_id, "cursor": cursor });
            let page: Heartbeat = self.service.post("/matchmaker/servers/heartbeat", body).await?;
            for AssignedLobby { lobby_id, lobby_token, max_players } in page.lobbies {
                lobbies.entry(lobby_id.clone()).or_insert_with(|| {
                    let service = self.service.with_token(lobby_token);
                    Arc::new(Lobby::open(lobby_id.clone(), service, max_players, self.events.clone()))
                });
                listed.insert(lobby_id);
            }
            // A page holds, and extends, at most 100 lobbies.
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        // What is listed no more has ended.
        for (_, lobby) in lobbies.extract_if(|id, lobby| !listed.contains(id) && !lobby.may_be_missed()) {
            lobby.end();
        }
        Ok(())
    }

    /// The lobby, which may have been created after the last heartbeat: then another one tells of it.
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

    async fn welcome_players(self: &Arc<Self>, listener: TcpListener) -> Result<(), ExampleError> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.map_err(ExampleError::Listen)?;
                    connections.spawn(Arc::clone(self).serve(stream));
                }
                Some(ended) = connections.join_next() => ended??,
            }
        }
    }

    /// Serves a player from its first line to its end. Only the service's failures are errors here.
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
        let players = match lobby.connect(&player_token).await {
            Ok(players) => players,
            Err(ClientError::Refused { code, .. }) => {
                refuse(&mut writer, &code).await;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // From here on the player holds a seat: however its connection ends, the seat is given back.
        if writer.write_all(format!("welcome {players}\n").as_bytes()).await.is_ok() {
            lobby.close_if_full().await?;
            lobby.play(&mut reader, &mut writer).await;
        }
        if lobby.disconnect(&player_token).await? == 0 {
            // Then the lobby has ended, unless somebody is on the way to it: a heartbeat tells.
            self.heartbeat(&mut *self.lobbies.lock().await).await?;
        }
        Ok(())
    }
}

/// Lobby and token that a player names in its first line; nothing when it does not.
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
    /// Players that are connected; held while the service is told, so that it is told everything in order.
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

    /// Whether it is no proof of its end when it is not listed. Without players it is: a mistake is put right by the next one.
    fn may_be_missed(&self) -> bool {
        let is_empty = self.connected.try_lock().is_ok_and(|connected| *connected == 0);
        !is_empty && self.opened_at.elapsed() < LIST_LAG
    }

    /// Has the service judge a player's token; the player is connected when it is accepted.
    async fn connect(&self, player_token: &str) -> Result<Players, ClientError> {
        let mut connected = self.connected.lock().await;
        let body = json!({ "player_token": player_token });
        let _: IgnoredAny = self.service.post("/matchmaker/players/connected", body).await?;
        *connected += 1;
        Ok(Players { connected: *connected, max: self.max_players })
    }

    /// The player's seat is free again; how many players remain.
    async fn disconnect(&self, player_token: &str) -> Result<u32, ClientError> {
        let mut connected = self.connected.lock().await;
        let body = json!({ "player_token": player_token });
        lives(self.service.post("/matchmaker/players/disconnected", body).await)?;
        *connected -= 1;
        let players = Players { connected: *connected, max: self.max_players };
        self.events.of_lobby(&self.lobby_id, Change::Left(players));
        if *self.stage.borrow() == Stage::Closed && players.connected < players.max {
            self.set_closed(false).await?;
        }
        Ok(players.connected)
    }

    /// Closes the lobby when it is full, which starts the game: until it is reopened no find fills a seat that a player left.
    async fn close_if_full(&self) -> Result<(), ClientError> {
        let connected = self.connected.lock().await;
        if *self.stage.borrow() == Stage::Open && *connected >= self.max_players {
            self.set_closed(true).await?;
        }
        Ok(())
    }

    async fn set_closed(&self, is_closed: bool) -> Result<(), ClientError> {
        let body = json!({ "is_closed": is_closed });
        if !lives(self.service.put("/matchmaker/lobbies/closed", body).await)? {
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

    /// Plays with a connected player, until it leaves or the lobby ends.
    async fn play(&self, reader: &mut BufReader<OwnedReadHalf>, writer: &mut OwnedWriteHalf) {
        let mut stage = self.stage.subscribe();
        let game = async {
            stage.wait_for(|stage| *stage != Stage::Open).await.map_err(io::Error::other)?;
            writer.write_all(b"start\n").await?;
            stage.wait_for(|stage| *stage == Stage::Ended).await.map_err(io::Error::other)?;
            io::Result::Ok(())
        };
        // This game is played without another word.
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

/// Whether the lobby still lives: its operator, for example, may end it at any moment, and nothing is left to be done then.
fn lives(answer: Result<IgnoredAny, ClientError>) -> Result<bool, ClientError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some("MATCHMAKER_LOBBY_STOPPED") => Ok(false),
        Err(error) => Err(error),
    }
}

//! A game server that runs several lobbies, and is the lobby server of each: the part that a studio writes
//! itself, on `muster-client`.
//!
//! Players send lines over TCP. A player sends `<lobby_id> <player_token>` and gets `welcome <n> of <max>` or
//! `refused <code>`, then `start` when its lobby is full. It leaves by closing the connection.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::Duration,
};

use muster_client::{Error, Event, GameServer as Registered, Lobby, Player, ServerOptions, api::ServerPort};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy, sink},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, mpsc::UnboundedReceiver, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    error::ExampleError,
    report::{Change, Events, Players},
    setup::{PORT, REGION},
};

/// Lobbies that the server runs at the same time, unless Muster says how many.
const CAPACITY: u32 = 4;
/// Time between heartbeats. Each writes the lease of every lobby, so that half the time costs twice as much;
/// players of a new lobby cause one of their own, and wait for none.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long a player's first line may take, and its longest length in bytes.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
const GREETING_BYTES_MAX: u64 = 4_096;
/// The longest name of a player that is shown.
const NAME_CHARS_MAX: usize = 24;

/// What a game server registers that is started by hand: the same `server_id` after restarts, so that a start
/// ends the lobbies that a crashed process left behind.
pub fn by_hand(url: &str, token: &str, server_id: &str, heartbeat: Duration) -> ServerOptions {
    ServerOptions {
        server_id: Some(server_id.to_owned()),
        capacity: CAPACITY,
        heartbeat,
        ..ServerOptions::new(url, token, REGION, BTreeMap::new())
    }
}

/// The game server.
pub struct GameServer {
    server: Registered,
    listener: TcpListener,
    games: SyncMutex<HashMap<String, Arc<Game>>>,
    events: Events,
}

impl GameServer {
    /// Listens at `address` and registers with `options`. From then on players may connect.
    pub async fn start(
        options: ServerOptions,
        address: SocketAddr,
        events: Events,
    ) -> Result<(Self, UnboundedReceiver<Event>), ExampleError> {
        let listener = TcpListener::bind(address).await.map_err(ExampleError::Listen)?;
        let address = listener.local_addr().map_err(ExampleError::Listen)?;
        let port = ServerPort {
            hostname: address.ip().to_string(),
            port: Some(address.port()),
            ..ServerPort::default()
        };
        let ports = BTreeMap::from([(PORT.to_owned(), port)]);
        let (server, happened) = Registered::start(ServerOptions { ports, ..options }).await?;
        events.note(format!("game server registered, players come to {address}"));
        Ok((Self { server, listener, games: SyncMutex::default(), events }, happened))
    }

    /// Runs lobbies until `until` is over, and drains for at most `limit`. On failure it ends every lobby.
    pub async fn run(
        self,
        happened: UnboundedReceiver<Event>,
        until: impl Future<Output = Result<(), ExampleError>>,
        limit: Duration,
    ) -> Result<(), ExampleError> {
        let this = Arc::new(self);
        let leave = async {
            until.await?;
            this.server.drain().await?;
            this.events.note("game server deregistered, its players play on".to_owned());
            sleep(limit).await;
            Err(ExampleError::Unfinished(limit))
        };
        let ended = tokio::select! {
            // Its end is looked for first: the drain that brings it about may still be under way.
            biased;
            ended = this.follow(happened) => ended,
            failed = this.welcome_players() => failed,
            failed = leave => failed,
        };
        if ended.is_err() {
            // Finds must send no more players here. If this fails too, the lease expires.
            let _that_failed_too = this.server.stop().await;
        }
        ended
    }

    /// Follows the lobbies until the server has drained, or may not go on.
    async fn follow(&self, mut happened: UnboundedReceiver<Event>) -> Result<(), ExampleError> {
        while let Some(event) = happened.recv().await {
            match event {
                Event::Lobby(lobby) => drop(self.game(&lobby)),
                Event::Ended(lobby) => {
                    let game = self.game(&lobby);
                    game.end();
                    self.games.lock().unwrap_or_else(PoisonError::into_inner).remove(lobby.id());
                }
                Event::Registered => self.events.note("game server registered again".to_owned()),
                Event::Stopped => break,
                Event::Replaced(error) => return Err(error.into()),
                // The next heartbeat makes up for a failure.
                Event::Failed(error) if error.is_transient() => {}
                Event::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The game in a lobby.
    fn game(&self, lobby: &Lobby) -> Arc<Game> {
        let mut games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || Arc::new(Game::open(lobby.clone(), self.events.clone()));
        Arc::clone(games.entry(lobby.id().to_owned()).or_insert_with(open))
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
    async fn serve(self: Arc<Self>, stream: TcpStream) -> Result<(), Error> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let Some((lobby_id, player_token)) = greeting(&mut reader).await else {
            return Ok(());
        };
        let player = match self.server.admit(&lobby_id, &player_token).await {
            Ok(player) => player,
            Err(error) => {
                let Some(code) = &error.code else { return Err(error) };
                let _gone_already = writer.write_all(format!("refused {code}\n").as_bytes()).await;
                return Ok(());
            }
        };
        // From here on the player holds a seat, which the server gives back however the connection ends.
        let game = self.game(player.lobby());
        let players = game.enter().await;
        if writer.write_all(format!("welcome {players}\n").as_bytes()).await.is_ok() {
            game.close_if_full().await?;
            game.play(&mut reader, &mut writer).await;
        }
        game.leave(&player).await
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

/// The name that the player chose. The client may send anything, and nothing that others must not claim.
fn name(player: &Player) -> String {
    let data = player.details().player_data.as_ref();
    let name = data.and_then(|data| data.get("name")).and_then(Value::as_str).unwrap_or("a player");
    name.chars().filter(|character| !character.is_control()).take(NAME_CHARS_MAX).collect()
}

/// The game in a lobby.
struct Game {
    lobby: Lobby,
    /// Connected players. Locked during calls of the service, so that they are in order.
    connected: Mutex<u32>,
    stage: watch::Sender<Stage>,
    events: Events,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Closed,
    Ended,
}

impl Game {
    fn open(lobby: Lobby, events: Events) -> Self {
        events.of_lobby(lobby.id(), Change::Opened);
        Self { lobby, connected: Mutex::default(), stage: watch::Sender::new(Stage::Open), events }
    }

    async fn enter(&self) -> Players {
        let mut connected = self.connected.lock().await;
        *connected += 1;
        Players { connected: *connected, max: self.lobby.max_players() }
    }

    /// Frees the player's seat.
    async fn leave(&self, player: &Player) -> Result<(), Error> {
        let mut connected = self.connected.lock().await;
        player.disconnected(None).await?;
        *connected -= 1;
        let players = Players { connected: *connected, max: self.lobby.max_players() };
        self.events.of_lobby(self.lobby.id(), Change::Left(name(player), players));
        if *self.stage.borrow() == Stage::Closed && players.connected < players.max {
            self.set_closed(false).await?;
        }
        Ok(())
    }

    /// Closes the lobby when it is full, which starts the game. Until it reopens, finds do not fill seats
    /// that players left.
    async fn close_if_full(&self) -> Result<(), Error> {
        let connected = self.connected.lock().await;
        if *self.stage.borrow() == Stage::Open && *connected >= self.lobby.max_players() {
            self.set_closed(true).await?;
        }
        Ok(())
    }

    async fn set_closed(&self, is_closed: bool) -> Result<(), Error> {
        match self.lobby.set_closed(is_closed).await {
            // An operator ended it, or it stays closed while the server drains.
            Err(error)
                if error.is("MATCHMAKER_LOBBY_STOPPED") || error.is("MATCHMAKER_LOBBY_STATE_CONFLICT") =>
            {
                return Ok(());
            }
            answer => answer?,
        }
        self.stage.send_if_modified(|stage| {
            let lives = *stage != Stage::Ended;
            if lives {
                *stage = if is_closed { Stage::Closed } else { Stage::Open };
            }
            lives
        });
        let change = if is_closed { Change::Closed } else { Change::Reopened };
        self.events.of_lobby(self.lobby.id(), change);
        Ok(())
    }

    /// Plays with a connected player until the player leaves or the lobby ends.
    async fn play(&self, reader: &mut BufReader<OwnedReadHalf>, writer: &mut OwnedWriteHalf) {
        let mut stage = self.stage.subscribe();
        let game = async {
            let now = *stage.wait_for(|stage| *stage != Stage::Open).await.map_err(io::Error::other)?;
            if now == Stage::Closed {
                writer.write_all(b"start\n").await?;
                stage.wait_for(|stage| *stage == Stage::Ended).await.map_err(io::Error::other)?;
            }
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
        self.events.of_lobby(self.lobby.id(), Change::Ended);
    }
}

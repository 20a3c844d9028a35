//! A player: a game client from its find to the end of the game.

use std::{collections::HashMap, io, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy, sink},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    client::{Client, ClientError, up_to},
    error::ExampleError,
    report::{Change, Events, Players},
    setup::{GAME_MODE, PORT, REGION},
};

/// The shortest length of a game, and the longest addition to it.
const GAME: Duration = Duration::from_millis(200);
const GAME_VARIATION: Duration = Duration::from_millis(600);

/// A player.
pub struct Bot {
    number: u32,
    /// The service, with the namespace's public token.
    service: Client,
    patience: Duration,
    events: Events,
}

/// The response of find and join.
#[derive(Deserialize)]
struct Seat {
    lobby: Lobby,
    ports: HashMap<String, Port>,
    player: Player,
}

#[derive(Deserialize)]
struct Lobby {
    lobby_id: String,
}

#[derive(Deserialize)]
struct Port {
    hostname: String,
    port: u16,
}

#[derive(Deserialize)]
struct Player {
    token: String,
}

type Connection = BufReader<TcpStream>;
/// How a bot got its seat.
type Arrival = fn(u32, Players) -> Change;

impl Bot {
    /// A bot that waits `patience` long for its lobby to fill.
    pub const fn new(number: u32, service: Client, patience: Duration, events: Events) -> Self {
        Self { number, service, patience, events }
    }

    /// Finds a lobby and plays in it.
    pub async fn play(&self) -> Result<(), ExampleError> {
        let connection = self.enter(&self.find().await?, Change::Found).await?;
        self.finish(connection).await;
        Ok(())
    }

    /// Finds a lobby and plays in it, with a friend that joins it there.
    pub async fn play_with(&self, friend: &Self) -> Result<(), ExampleError> {
        let seat = self.find().await?;
        let connection = self.enter(&seat, Change::Found).await?;
        let friends_seat = match friend.join(&seat.lobby.lobby_id).await {
            // Other bots joined friends there, too.
            Err(error) if error.code() == Some("MATCHMAKER_LOBBY_FULL") => {
                let ((), played) = tokio::join!(self.finish(connection), friend.play());
                return played;
            }
            answer => answer?,
        };
        let friends_connection = friend.enter(&friends_seat, Change::Joined).await?;
        tokio::join!(self.finish(connection), friend.finish(friends_connection));
        Ok(())
    }

    /// A seat in any lobby that fits, or in a new one.
    async fn find(&self) -> Result<Seat, ClientError> {
        let body = json!({ "game_modes": [GAME_MODE], "regions": [REGION], "player_data": self.data() });
        self.service.post("/matchmaker/lobbies/find", body).await
    }

    /// A seat in this lobby, even if it is closed or full, while it has direct seats.
    async fn join(&self, lobby_id: &str) -> Result<Seat, ClientError> {
        let body = json!({ "lobby_id": lobby_id, "player_data": self.data() });
        self.service.post("/matchmaker/lobbies/join", body).await
    }

    /// What the game server learns of it from its token.
    fn data(&self) -> Value {
        json!({ "name": format!("bot {}", self.number) })
    }

    /// Takes a seat: sends lobby and player token to its port, and waits for the welcome.
    async fn enter(&self, seat: &Seat, arrival: Arrival) -> Result<Connection, ExampleError> {
        let Seat { lobby: Lobby { lobby_id }, ports, player: Player { token } } = seat;
        let lost = |problem| ExampleError::Unreachable(self.number, problem);
        let port = ports.get(PORT).ok_or_else(|| lost(io::ErrorKind::AddrNotAvailable.into()))?;
        let stream = TcpStream::connect((port.hostname.as_str(), port.port)).await.map_err(lost)?;
        let mut connection = BufReader::new(stream);
        connection.write_all(format!("{lobby_id} {token}\n").as_bytes()).await.map_err(lost)?;
        let mut answer = String::new();
        connection.read_line(&mut answer).await.map_err(lost)?;
        let answer = answer.trim_end();
        let players = answer.strip_prefix("welcome ").and_then(|players| players.parse().ok());
        let players = players.ok_or_else(|| ExampleError::Unwelcome(self.number, answer.to_owned()))?;
        self.events.of_lobby(lobby_id, arrival(self.number, players));
        Ok(connection)
    }

    /// Plays when the game starts, or alone if no other player comes, and leaves.
    async fn finish(&self, mut connection: Connection) {
        let _started_or_not = timeout(self.patience, connection.read_line(&mut String::new())).await;
        sleep(GAME + up_to(GAME_VARIATION)).await;
        // The server closes the connection once the seat is free.
        let _gone_already = connection.shutdown().await;
        let _hung_up = copy(&mut connection, &mut sink()).await;
    }
}

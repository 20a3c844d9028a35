//! A player: a game client from its find to the end of the game.

use std::{io, time::Duration};

use muster_client::{
    Error, Muster, Seat,
    api::{Entry, FindLobbyRequest, JoinLobbyRequest},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy, sink},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
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
    muster: Muster,
    patience: Duration,
    events: Events,
}

type Connection = BufReader<TcpStream>;
/// How a bot got its seat.
type Arrival = fn(u32, Players) -> Change;

impl Bot {
    /// A bot that waits `patience` long for its lobby to fill.
    pub fn new(number: u32, muster: Muster, patience: Duration, events: Events) -> Self {
        Self { number, muster, patience, events }
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
        let friends_seat = match friend.join(&seat.lobby_id).await {
            // Other bots joined friends there, too.
            Err(error) if error.is("MATCHMAKER_LOBBY_FULL") => {
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
    async fn find(&self) -> Result<Seat, Error> {
        let (game_modes, regions) = (vec![GAME_MODE.to_owned()], vec![REGION.to_owned()]);
        let wanted =
            FindLobbyRequest { game_modes, regions, entry: self.entry(), ..FindLobbyRequest::default() };
        self.muster.find(&wanted).await
    }

    /// A seat in this lobby, even if it is closed or full, while it has direct seats.
    async fn join(&self, lobby_id: &str) -> Result<Seat, Error> {
        let wanted = JoinLobbyRequest { lobby_id: lobby_id.to_owned(), entry: self.entry() };
        self.muster.join(&wanted).await
    }

    /// What the game server learns of it from its token.
    fn entry(&self) -> Entry {
        Entry { player_data: Some(json!({ "name": format!("bot {}", self.number) })), ..Entry::default() }
    }

    /// Takes a seat: sends lobby and player token to its port, and waits for the welcome.
    async fn enter(&self, seat: &Seat, arrival: Arrival) -> Result<Connection, ExampleError> {
        let Seat { lobby_id, token, .. } = seat;
        let lost = |problem| ExampleError::Unreachable(self.number, problem);
        let address = seat.address(PORT).ok_or_else(|| lost(io::ErrorKind::AddrNotAvailable.into()))?;
        let stream = TcpStream::connect(address).await.map_err(lost)?;
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
        sleep(GAME + GAME_VARIATION.mul_f64(fastrand::f64())).await;
        // The server closes the connection once the seat is free.
        let _gone_already = connection.shutdown().await;
        let _hung_up = copy(&mut connection, &mut sink()).await;
    }
}

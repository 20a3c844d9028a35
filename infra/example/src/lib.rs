//! A session as a studio would run it, by the public operations alone: a game server with its lobbies, and players.
//!
//! `game_server.rs` is what to read before writing a lobby server, `bot.rs` is what a game client does, `setup.rs` what is done
//! once for a game. The rest serves the demonstration.

use std::{io, net::Ipv4Addr, time::Duration};

use serde::Deserialize;
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};

use bot::Bot;
use client::{Client, ClientError};
use game_server::GameServer;
use report::{Events, short};
use setup::Namespace;

pub use report::{Change, Event, Players, Report};

mod bot;
mod client;
mod game_server;
mod report;
mod setup;

/// Over which time the bots come.
const ARRIVALS: Duration = Duration::from_secs(1);
/// One in so many bots joins a friend.
const FRIEND_EVERY: u32 = 5;

/// What the session is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the stack listens.
    pub url: String,
    /// How many bots play.
    pub bots: u32,
    /// How long all of it may take.
    pub limit: Duration,
    /// How long a bot waits for its lobby to fill.
    pub patience: Duration,
}

impl Options {
    /// The usual session with the stack at `url`.
    #[must_use]
    pub const fn at(url: String) -> Self {
        Self { url, bots: 12, limit: Duration::from_secs(60), patience: Duration::from_secs(3) }
    }
}

/// Why a session failed.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// There is nothing to play against.
    #[error("no local stack: {0}; start it with `cargo run`")]
    NoLocalStack(ClientError),
    /// The service did not do what was asked of it.
    #[error(transparent)]
    Service(#[from] ClientError),
    /// The game server cannot listen.
    #[error("the game server cannot listen: {0}")]
    Listen(io::Error),
    /// A bot cannot reach the game server.
    #[error("bot {0} cannot reach the game server: {1}")]
    Unreachable(u32, io::Error),
    /// A bot was told this instead of a welcome.
    #[error("bot {0} was not welcome: `{1}`")]
    Unwelcome(u32, String),
    /// The session took too long.
    #[error("the session is not over after {} s", .0.as_secs())]
    Unfinished(Duration),
    /// The example itself is at fault.
    #[error("the example broke: {0}")]
    Broken(#[from] JoinError),
}

/// Plays a session and shows each event. It is over when every bot has played and every lobby has ended.
///
/// # Errors
/// [`ExampleError`]; even then the game server deregistered, if it could.
pub async fn run(options: &Options, mut show: impl FnMut(&Event)) -> Result<Report, ExampleError> {
    let (events, mut received) = Events::channel();
    let mut report = Report::default();
    let take_in = async {
        while let Some(event) = received.recv().await {
            show(&event);
            report.take_in(event);
        }
    };
    let (namespace_id, ()) = tokio::join!(session(options, events), take_in);
    Ok(Report { namespace_id: namespace_id?, ..report })
}

async fn session(options: &Options, events: Events) -> Result<String, ExampleError> {
    let namespace = Namespace::make(&Client::new(&options.url)).await?;
    events.note(format!("namespace {}", namespace.name_id));
    // The server listens before it registers: from then on players may come.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ExampleError::Listen)?;
    let address = listener.local_addr().map_err(ExampleError::Listen)?;
    let server = GameServer::register(namespace.server.clone(), address, events.clone()).await?;
    let played = timeout(options.limit, async {
        let play = async {
            play(options, &namespace.public, &events).await?;
            Ok(server.until_every_lobby_ended().await?)
        };
        tokio::select! {
            played = play => played,
            failed = server.run(listener) => failed,
        }
    });
    let played = played.await;
    // Whatever happened, nobody is to be sent here any more.
    let deregistered = server.deregister().await;
    played.map_err(|_| ExampleError::Unfinished(options.limit))??;
    deregistered?;
    Ok(namespace.namespace_id)
}

/// Lets the bots come, one after the other, and waits until the last has played.
async fn play(options: &Options, service: &Client, events: &Events) -> Result<(), ExampleError> {
    let bot = |number| Bot::new(number, service.clone(), options.patience, events.clone());
    let mut playing = JoinSet::new();
    for number in 1..=options.bots {
        let (this, next) = (bot(number), number + 1);
        if next % FRIEND_EVERY == 0 && next <= options.bots {
            let friend = bot(next);
            playing.spawn(async move { this.play_with(&friend).await });
        } else if number % FRIEND_EVERY != 0 {
            playing.spawn(async move { this.play().await });
        }
        sleep(ARRIVALS / options.bots).await;
        if number == options.bots.div_ceil(2) {
            look(service, events).await?;
        }
    }
    while let Some(played) = playing.join_next().await {
        played??;
    }
    Ok(())
}

/// What a game client shows before its player plays. Both answers are up to 5 s old; closed lobbies are not listed.
async fn look(service: &Client, events: &Events) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Statistics {
        player_count: u64,
    }
    #[derive(Deserialize)]
    struct List {
        lobbies: Vec<ListedLobby>,
    }
    #[derive(Deserialize)]
    struct ListedLobby {
        lobby_id: String,
        total_player_count: u32,
        max_players_normal: u32,
    }
    let Statistics { player_count } = service.get("/matchmaker/players/statistics").await?;
    events.note(format!("statistics  {player_count} players"));
    let List { lobbies } = service.get("/matchmaker/lobbies/list").await?;
    for ListedLobby { lobby_id, total_player_count, max_players_normal } in lobbies {
        events.note(format!("list  {}  {total_player_count} of {max_players_normal}", short(&lobby_id)));
    }
    Ok(())
}

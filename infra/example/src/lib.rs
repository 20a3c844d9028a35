//! A session as a studio would run it, using only the API: a game server with its lobbies, and players.
//!
//! Read `game_server.rs` before you write a lobby server, `bot.rs` before you write a game client, and
//! `setup.rs` for the one-time setup of a game. The rest is for the demonstration.

use std::{
    collections::BTreeMap,
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use muster_client::{Muster, api::ListLobbiesQuery};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use bot::Bot;
use game_server::{GameServer, HEARTBEAT, by_hand};
use report::{Events, short};
use setup::Namespace;

pub use error::ExampleError;
pub use report::{Change, Event, Players, Report};

mod bot;
mod error;
mod game_server;
mod report;
mod setup;

/// The time over which the bots arrive.
const ARRIVALS: Duration = Duration::from_secs(1);
/// One in this many bots joins a friend.
const FRIEND_EVERY: u32 = 5;

/// Options of a session.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the stack listens.
    pub url: String,
    /// How many bots play.
    pub bots: u32,
    /// How long the bots may play, and how long the lobbies may then take to end.
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

/// Options of a game server without bots.
pub struct ServerOptions {
    /// Where the stack listens.
    pub url: String,
    /// A server token of its namespace.
    pub token: String,
    /// Its identifier there.
    pub server_id: String,
    /// The players' port on this machine; 0 takes a free one.
    pub port: u16,
    /// Time between its heartbeats.
    pub heartbeat: Duration,
    /// How long its lobbies may take to end after the end request.
    pub limit: Duration,
}

/// Plays a session and shows each event. It is over when every bot has played, or at `end`, and every lobby
/// has ended.
///
/// # Errors
/// [`ExampleError`]; even then, the game server tries to deregister.
pub async fn run(
    options: &Options,
    end: impl Future<Output = ()>,
    mut show: impl FnMut(&Event),
) -> Result<Report, ExampleError> {
    let (events, mut received) = Events::channel();
    let mut report = Report::default();
    let take_in = async {
        while let Some(event) = received.recv().await {
            show(&event);
            report.take_in(event);
        }
    };
    let (namespace_id, ()) = tokio::join!(session(options, end, events), take_in);
    Ok(Report { namespace_id: namespace_id?, ..report })
}

/// Runs the game server alone and shows each event. It is over after `end`, when every lobby has ended.
///
/// # Errors
/// [`ExampleError`]; even then, the game server tries to deregister.
pub async fn serve(
    options: &ServerOptions,
    end: impl Future<Output = ()>,
    show: impl FnMut(&Event),
) -> Result<(), ExampleError> {
    let ServerOptions { url, token, server_id, port, heartbeat, limit } = options;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
    serve_as(by_hand(url, token, server_id, *heartbeat), address, (end, *limit), show).await
}

/// Runs the game server that Muster had this process started as, and shows each event. It is over when Muster
/// wants it no more, or at `end` with its lobbies.
///
/// # Errors
/// [`ExampleError`]; even then, the game server tries to deregister.
pub async fn serve_on_demand(
    end: impl Future<Output = ()>,
    show: impl FnMut(&Event),
) -> Result<(), ExampleError> {
    let options = muster_client::ServerOptions::on_demand(BTreeMap::new());
    let options = options.ok_or(ExampleError::NotStarted)?;
    let port = env::var("MUSTER_PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(0);
    let host = env::var("MUSTER_HOSTNAME").ok().and_then(|host| host.parse().ok());
    let host = host.unwrap_or(IpAddr::from(Ipv4Addr::LOCALHOST));
    match serve_as(options, (host, port).into(), (end, Duration::ZERO), show).await {
        // What asked it to end kills it soon.
        Err(ExampleError::Unfinished(_)) => Ok(()),
        ended => ended,
    }
}

async fn serve_as(
    options: muster_client::ServerOptions,
    address: SocketAddr,
    (end, limit): (impl Future<Output = ()>, Duration),
    mut show: impl FnMut(&Event),
) -> Result<(), ExampleError> {
    let (events, mut received) = Events::channel();
    let served = async {
        let (server, happened) = GameServer::start(options, address, events).await?;
        let until_the_end = async {
            end.await;
            Ok(())
        };
        server.run(happened, until_the_end, limit).await
    };
    let show_all = async {
        while let Some(event) = received.recv().await {
            show(&event);
        }
    };
    tokio::join!(served, show_all).0
}

async fn session(
    options: &Options,
    end: impl Future<Output = ()>,
    events: Events,
) -> Result<String, ExampleError> {
    let Options { url, limit, .. } = options;
    let http = muster_client::http_client();
    let namespace = Namespace::make(&http, url).await?;
    events.note(format!("namespace {}", namespace.name_id));
    let server = by_hand(url, &namespace.server, "example", HEARTBEAT);
    let (server, happened) =
        GameServer::start(server, (Ipv4Addr::LOCALHOST, 0).into(), events.clone()).await?;
    let muster = Muster::with_http(url, &namespace.public, http);
    let playing = timeout(*limit, play(options, &muster, &events));
    let until_played = async {
        tokio::select! {
            played = playing => played.map_err(|_| ExampleError::Unfinished(*limit))?,
            () = end => Ok(()),
        }
    };
    server.run(happened, until_played, *limit).await?;
    Ok(namespace.namespace_id)
}

/// Starts the bots, one after the other, and waits until the last has played.
async fn play(options: &Options, muster: &Muster, events: &Events) -> Result<(), ExampleError> {
    let bot = |number| Bot::new(number, muster.clone(), options.patience, events.clone());
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
            look(muster, events).await?;
        }
    }
    while let Some(played) = playing.join_next().await {
        played??;
    }
    Ok(())
}

/// Notes a game client's overview before the game: up to 5 s old, and without closed lobbies.
async fn look(muster: &Muster, events: &Events) -> Result<(), ExampleError> {
    for lobby in muster.list(&ListLobbiesQuery::default()).await?.lobbies {
        let (players, max) = (lobby.total_player_count, lobby.max_players_normal);
        events.note(format!("list  {}  {players} of {max}", short(&lobby.lobby_id)));
    }
    Ok(())
}

//! How the example's process ends: by a signal, killed, or replaced by a later start.

#![cfg(unix)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: what cannot go on panics"
)]

use harness::{Answer, TestGame, all_servers, new_game};
use http::Method;
use serde_json::json;
use shared::models::{ids::NamespaceId, server::Server};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use super::*;
use crate::artefacts::PATIENCE;

/// A game of two players a lobby, and no more than `seats` a client, without any game server.
async fn game(stack: &TestStack, seats: u32) -> TestGame {
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 2 } });
    let mut new = new_game("duels", modes, 9);
    new.namespaces[0].max_players_per_client = seats;
    stack.make_game_of(new, 0).await
}

async fn find(stack: &TestStack, game: &TestGame) -> Answer {
    game.find(stack, json!({ "game_modes": ["duel"] })).await
}

/// Starts the namespace's game server; also where its players come to.
async fn serve(stack: &TestStack, game: &TestGame, arguments: &[&str]) -> (Program, String) {
    // These tests wait for heartbeats.
    let arguments = [&["serve", "--heartbeat", "5", "--url", &stack.demo().base_url], arguments].concat();
    let environment = [("MUSTER_SERVER_TOKEN".to_owned(), game.server.clone())].into();
    let mut server = Program::start(BINARY, &arguments, &environment);
    let Some(line) = server.line_with("game server registered").await else {
        panic!("{:?}", server.end().await);
    };
    let address = line.strip_prefix("game server registered, players come to ").expect("nothing before it");
    (server, address.to_owned())
}

/// A player in a lobby, who leaves when dropped.
struct Player(BufReader<TcpStream>);

impl Player {
    /// Enters the lobby of a find, as `players`.
    async fn enter(seat: &Answer, players: &str) -> Self {
        let address = seat.body["ports"]["default"]["host"].as_str().expect("an address");
        let mut player = Self(BufReader::new(TcpStream::connect(address).await.unwrap()));
        let token = seat.body["player"]["token"].as_str().expect("a token");
        let greeting = format!("{} {token}\n", seat.lobby_id());
        player.0.write_all(greeting.as_bytes()).await.unwrap();
        assert_eq!(player.line().await, format!("welcome {players}"));
        player
    }

    /// What the server says next; nothing if it hung up.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        // A server that was killed may reset the connection.
        let _read = timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("a line in time");
        line.trim_end().to_owned()
    }
}

/// The one game server of a namespace.
async fn the_server(stack: &TestStack, namespace_id: &NamespaceId) -> Server {
    all_servers(stack.store(), namespace_id).await.pop().expect("a server")
}

async fn assert_nothing_is_left(stack: &TestStack, namespace_id: &NamespaceId) {
    let lobbies = stack.all_lobbies(namespace_id).await;
    assert!(lobbies.iter().all(|lobby| lobby.stage == Stage::Ended), "a lobby is left: {lobbies:?}");
    assert_eq!(live_lobbies(stack.store(), namespace_id).await, 0);
}

#[tokio::test]
async fn a_server_that_drains_gets_no_lobby_and_ends_when_its_players_have_left() {
    for signal in ["TERM", "INT"] {
        let stack = TestStack::start_live().await;
        let game = game(&stack, 9).await;
        let (mut server, _) = serve(&stack, &game, &[]).await;
        let seats = [find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok()];
        let mut one = Player::enter(&seats[0], "1 of 2").await;

        server.signal(signal);
        let _deregistered = server.line_with("game server deregistered").await.expect("it drains");
        assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
        let lease = the_server(&stack, game.namespace_id()).await.lease_until;
        let renewed = async {
            while the_server(&stack, game.namespace_id()).await.lease_until <= lease {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, renewed).await.expect("its heartbeats go on");

        // Who had a seat still comes, and both play.
        let two = Player::enter(&seats[1], "2 of 2").await;
        assert_eq!(one.line().await, "start");
        drop(one);
        let _left = server.line_with("1 of 2  a player left").await.expect("it goes on");
        drop(two);
        let ended = server.end().await;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{signal}: {ended:?}");
        assert_nothing_is_left(&stack, game.namespace_id()).await;
    }
}

#[tokio::test]
async fn a_server_whose_players_stay_too_long_ends_their_lobby() {
    let stack = TestStack::start_live().await;
    let game = game(&stack, 9).await;
    let (mut server, _) = serve(&stack, &game, &["--seconds", "1"]).await;
    let mut player = Player::enter(&find(&stack, &game).await.expect_ok(), "1 of 2").await;
    server.signal("TERM");
    assert_eq!(player.line().await, "");
    let ended = server.end().await;
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_nothing_is_left(&stack, game.namespace_id()).await;
}

#[tokio::test]
async fn a_session_that_a_signal_ends_leaves_nothing_behind() {
    let stack = TestStack::start_live().await;
    let arguments = ["--url", &stack.demo().base_url, "--bots", "1"];
    let mut session = Program::start(BINARY, &arguments, &BTreeMap::new());
    let _plays = session.line_with("bot 1 connected").await.expect("it plays");
    session.signal("TERM");
    let ended = session.end().await;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let namespaces = stack.store().namespaces(&stack.demo().game_id).await.unwrap();
    let played = namespaces.iter().find(|namespace| namespace.name_id.starts_with("example-"));
    assert_nothing_is_left(&stack, &played.expect("its namespace").namespace_id).await;
}

/// A free port that stays free: below those that a system gives out for port 0 and for connections.
async fn fixed_port() -> String {
    loop {
        let port = fastrand::u16(20_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).await.is_ok() {
            return port.to_string();
        }
    }
}

#[tokio::test]
async fn a_server_that_crashed_and_starts_again_has_new_lobbies_and_none_of_the_old_players() {
    let stack = TestStack::start_live().await;
    let game = game(&stack, 2).await;
    let port = fixed_port().await;
    let enter_both = async || {
        let seats = [find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok()];
        let players = [Player::enter(&seats[0], "1 of 2").await, Player::enter(&seats[1], "2 of 2").await];
        assert_eq!(seats[0].lobby_id(), seats[1].lobby_id());
        (seats[0].lobby_id(), players)
    };
    let (mut server, address) = serve(&stack, &game, &["--port", &port]).await;
    let (old_lobby, mut old_players) = enter_both().await;
    assert_eq!(find(&stack, &game).await.refusal().1, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    let _killed = server.kill().await;
    for player in &mut old_players {
        while !player.line().await.is_empty() {}
    }

    // At once, with the very same registration but for its start.
    let (_server, same_address) = serve(&stack, &game, &["--port", &port]).await;
    assert_eq!(same_address, address);
    assert_eq!(game.lobby(&stack, &old_lobby).await.stage, Stage::Ended);
    let (new_lobby, _players) = enter_both().await;
    assert_ne!(new_lobby, old_lobby);
    assert_eq!(live_lobbies(stack.store(), game.namespace_id()).await, 1);
    let statistics =
        stack.call(Method::GET, "/matchmaker/players/statistics", Some(&game.public), "").await.expect_ok();
    assert_eq!(statistics.body["player_count"], 2);
}

#[tokio::test]
async fn a_server_that_a_later_start_replaced_ends_and_takes_nothing_from_it() {
    let stack = TestStack::start_live().await;
    let game = game(&stack, 9).await;
    let (mut first, _) = serve(&stack, &game, &[]).await;
    let (mut second, address) = serve(&stack, &game, &[]).await;
    // Whether a heartbeat listed it before or not.
    first.signal("TERM");
    let _ended = first.end().await;
    let seat = find(&stack, &game).await.expect_ok();
    assert_eq!(seat.body["ports"]["default"]["host"], address);
    let mut player = Player::enter(&seat, "1 of 2").await;

    let (_third, address) = serve(&stack, &game, &[]).await;
    let ended = second.end().await;
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("MATCHMAKER_LOBBY_STATE_CONFLICT"), "{ended:?}");
    assert_eq!(player.line().await, "");
    assert_eq!(find(&stack, &game).await.expect_ok().body["ports"]["default"]["host"], address);
}

//! A game server in passing time, beyond the rules of every client.

use std::iter::repeat_n;

use futures_util::FutureExt as _;

use super::*;
use crate::{
    http::Reply,
    rules::{Scripted, lobbies, ok, registered, reply_of},
};

const EVERY: Duration = Duration::from_secs(2);

fn options() -> ServerOptions {
    ServerOptions {
        heartbeat: EVERY,
        ..ServerOptions::new("http://muster.test", "server_1", "fra", [].into())
    }
}

fn list(ids: &[&str]) -> Option<Reply> {
    lobbies(ids, &Value::Null)
}

fn refusal(code: &str) -> Option<Reply> {
    reply_of(&json!({ "status": 400, "code": code }))
}

/// A game server that is registered, and gets `replies` from its first heartbeat on.
async fn started(
    options: ServerOptions,
    replies: impl IntoIterator<Item = Option<Reply>>,
) -> (GameServer, mpsc::UnboundedReceiver<Event>, Arc<Scripted>) {
    let transport = Scripted::new([registered()].into_iter().chain(replies));
    let (server, events) = GameServer::start_in(Arc::clone(&transport) as World, options).await.unwrap();
    (server, events, transport)
}

/// Seconds between the requests of an operation.
fn gaps(transport: &Scripted, operation: &str) -> Vec<u64> {
    let sent = transport.sent.lock().unwrap();
    let times: Vec<_> =
        sent.iter().filter(|(call, _)| call.url.ends_with(operation)).map(|(_, at)| *at).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_frequent_only_while_a_lobby_may_come() {
    let replies = [list(&[]), list(&[]), list(&["one"]), list(&["one"]), ok(&json!({})), list(&[])];
    let drained = [ok(&json!({})), list(&[]), list(&[]), refusal(SERVER_NOT_FOUND)];
    let (server, mut events, transport) = started(options(), replies.into_iter().chain(drained)).await;
    let Some(Event::Lobby(lobby)) = events.recv().await else { panic!("no lobby") };
    // Until the heartbeat of a server that has all its lobbies.
    sleep(Duration::from_secs(11)).await;
    lobby.end().await.unwrap();
    // Until the heartbeat that sees what came in its place.
    sleep(Duration::from_secs(1)).await;
    server.drain().await.unwrap();
    while !matches!(events.recv().await, Some(Event::Stopped)) {}
    // At last it drains without lobbies, until Muster forgets it.
    assert_eq!(gaps(&transport, "heartbeat"), [2, 2, 10, 3, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_bounds_the_time_between_heartbeats() {
    let short = ServerOptions { lease: Some(Duration::from_secs(3)), ..options() };
    let (_server, _events, transport) = started(short, repeat_n(list(&[]), 9)).await;
    sleep(Duration::from_secs(5)).await;
    let body = transport.sent.lock().unwrap()[0].0.body.clone().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["lease_seconds"], 3);
    assert!(gaps(&transport, "heartbeat").len() > 3);
    assert!(gaps(&transport, "heartbeat").iter().all(|gap| *gap == 1));
}

#[tokio::test(start_paused = true)]
async fn a_young_lobby_is_looked_for_until_a_heartbeat_must_list_it() {
    let slow = || ServerOptions { heartbeat: Duration::from_secs(600), ..options() };
    let replies = [list(&[]), list(&["other"]), None, list(&["other", "new"])];
    let (server, ..) = started(slow(), replies).await;
    assert_eq!(server.lobby("new").await.unwrap().id(), "new");

    let (server, _events, transport) = started(slow(), repeat_n(list(&["other"]), 9)).await;
    let unknown = server.lobby("new").await.unwrap_err();
    assert!(unknown.is("MATCHMAKER_LOBBY_NOT_FOUND") && !unknown.is_transient());
    assert_eq!(
        transport.paths(),
        ["register", "heartbeat", "heartbeat", "heartbeat", "heartbeat", "heartbeat"]
    );

    // Without heartbeats nobody knows whether there is a lobby.
    let (server, ..) = started(options(), [list(&[])].into_iter().chain(repeat_n(None, 99))).await;
    assert!(server.lobby("new").await.unwrap_err().is_transient());
}

#[tokio::test(start_paused = true)]
async fn a_lobby_that_is_not_listed_has_ended_unless_it_is_young_and_has_players() {
    let slow = ServerOptions { heartbeat: Duration::from_secs(600), capacity: 2, ..options() };
    let replies = [list(&["empty", "played"]), ok(&json!({ "player_id": "1" })), list(&[]), list(&[])];
    let (server, mut events, _transport) = started(slow, replies).await;
    server.admit("played", "player_1").await.unwrap();
    let lobbies = server.lobbies();
    server.beat().await.unwrap();
    assert_eq!(lobbies.iter().map(Lobby::is_ended).collect::<Vec<_>>(), [true, false]);
    sleep(LAG).await;
    server.beat().await.unwrap();
    assert!(lobbies[1].ended().now_or_never().is_some() && server.lobbies().is_empty());
    let mut ended = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::Ended(lobby) = event {
            ended.push(lobby.id().to_owned());
        }
    }
    assert_eq!(ended, ["empty", "played"]);
}

#[tokio::test(start_paused = true)]
async fn how_long_ago_a_heartbeat_was_accepted_is_known() {
    let replies = [list(&[])].into_iter().chain(repeat_n(refusal("TOKEN_REVOKED"), 3)).chain([list(&[])]);
    let (server, mut events, _transport) = started(options(), replies).await;
    let first = server.accepted_at();
    for _ in 0..3 {
        assert!(matches!(events.recv().await, Some(Event::Failed(error)) if error.is("TOKEN_REVOKED")));
        assert_eq!(server.accepted_at(), first);
    }
    sleep(EVERY + LOOK_PAUSE).await;
    assert_eq!(server.accepted_at() - first, EVERY * 4);
}

#[tokio::test(start_paused = true)]
async fn a_closed_server_sends_nothing_more() {
    let (server, mut events, transport) = started(options(), [list(&["one"])]).await;
    let lobby = server.lobbies().remove(0);
    server.close();
    sleep(Duration::from_secs(600)).await;
    assert!(lobby.is_ended());
    assert!(matches!(events.recv().await, Some(Event::Lobby(_))));
    assert!(matches!(events.recv().await, Some(Event::Ended(_))));
    assert_eq!(transport.paths(), ["register", "heartbeat"]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_for_a_lobby_is_refused_only_where_that_matters() {
    let slow = ServerOptions { heartbeat: Duration::from_secs(600), ..options() };
    let over = || refusal("MATCHMAKER_LOBBY_STOPPED");
    let replies = [list(&["one"]), ok(&json!({})), over(), over(), over(), over()];
    let (server, ..) = started(slow, replies).await;
    let player = server.admit("one", "player_1").await.unwrap();
    let lobby = player.lobby().clone();
    assert!(lobby.disconnected("player_1", None).await.unwrap_err().is("MATCHMAKER_LOBBY_STOPPED"));
    player.disconnected(None).await.unwrap();
    let any: Result<Value, Error> = lobby.call(Method::POST, "lobbies/any", &json!({}), DEADLINE).await;
    assert!(any.unwrap_err().is("MATCHMAKER_LOBBY_STOPPED"));
    lobby.end().await.unwrap();
    assert!(lobby.is_ended() && server.lobbies().is_empty());
}

/// How long a drained server goes on after its last lobby, where its heartbeats have these replies.
async fn after_the_last_lobby(heartbeats: impl IntoIterator<Item = Option<Reply>>) -> Duration {
    let slow = ServerOptions { heartbeat: Duration::from_secs(600), ..options() };
    let done = || ok(&json!({}));
    let replies = [list(&["one"]), done(), list(&["one"]), done()].into_iter().chain(heartbeats);
    let (server, mut events, _transport) = started(slow, replies).await;
    server.drain().await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    server.lobbies()[0].end().await.unwrap();
    while !matches!(events.recv().await, Some(Event::Stopped)) {}
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_drained_server_stops_as_soon_as_its_last_lobby_has_ended() {
    let took = after_the_last_lobby([refusal(SERVER_NOT_FOUND)]).await;
    assert_eq!(took.as_secs(), 2, "of two requests, each a second");
}

#[tokio::test(start_paused = true)]
async fn a_drained_server_without_lobbies_asks_until_it_is_forgotten() {
    let took = after_the_last_lobby([list(&[]), list(&[]), refusal(SERVER_NOT_FOUND)]).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
}

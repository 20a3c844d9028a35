//! What surrounds a match: the cap on a client's seats, and requests that are repeated.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeSet, net::Ipv4Addr};

use harness::{Answer, TestGame, TestStack, new_game};
use http::Request;
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::{Value, json};

mod cap;
mod explaining;
mod removed;
mod replays;
mod standing;

/// Seats that a client may hold in the games here.
const CAP: u32 = 8;
/// The address that requests come from by themselves.
const HOME: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A game whose clients may hold `cap` seats each, of the mode `arena` for ten players.
async fn capped_game(stack: &TestStack, name: &str, cap: u32) -> TestGame {
    let actions = json!({ "create": { "enabled": true } });
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 10, "actions": actions } });
    let mut new = new_game(name, modes, 1_000);
    new.namespaces[0].max_players_per_client = cap;
    stack.make_game_of(new, 100).await
}

/// A player's request, repeatable under `key` if it has one.
fn request(
    game: &TestGame,
    base_url: &str,
    operation: &str,
    key: Option<&str>,
    body: &Value,
) -> Request<Full<Bytes>> {
    let mut request = Request::post(format!("{base_url}/matchmaker/lobbies/{operation}"))
        .header("authorization", format!("Bearer {}", game.public));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Full::new(body.to_string().into())).unwrap()
}

fn arena() -> Value {
    json!({ "game_modes": ["arena"] })
}

async fn find_from(stack: &TestStack, game: &TestGame, address: Ipv4Addr) -> Answer {
    stack.send_from(address, request(game, &stack.demo().base_url, "find", None, &arena())).await
}

async fn ask(stack: &TestStack, game: &TestGame, operation: &str, key: &str, body: &Value) -> Answer {
    stack.send(request(game, &stack.demo().base_url, operation, Some(key), body)).await
}

/// Lobby and seat of an answer.
fn seat(stack: &TestStack, answer: &Answer) -> (String, String) {
    let seat = stack.seat(answer);
    (seat.lobby_id.to_string(), seat.seat_id.to_string())
}

/// Every seat that the tables hold for the game.
async fn seats_held(stack: &TestStack, game: &TestGame) -> BTreeSet<(String, String)> {
    let now = stack.clock.now();
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let seats = lobbies.iter().flat_map(|lobby| {
        let seats = lobby.reserved.keys().chain(lobby.connected.keys());
        let held =
            seats.filter(move |seat| lobby.seat_state(seat, now) == shared::models::lobby::SeatState::Held);
        held.map(|seat| (lobby.lobby_id.to_string(), seat.to_string()))
    });
    seats.collect()
}

/// Items of the table of clients.
async fn items(stack: &TestStack) -> usize {
    let store = stack.store();
    let scan = store.client().scan().table_name(&store.tables().clients).send().await.unwrap();
    scan.items().len()
}

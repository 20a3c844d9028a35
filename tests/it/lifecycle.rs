//! Lobbies live and end: game servers, lobby servers and players over HTTP, and what the tables then hold.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{sync::Arc, time::Duration};

use harness::{Answer, TestGame, TestStack, instance::event};
use http::Method;
use muster_local::{
    emulator::link::{Link, patient_client_over},
    functions::Functions,
    stack::{TEMPLATE, table_names},
    template::Template,
};
use serde_json::{Value, json};
use shared::{outside::endpoints::Outside, store::client::Store};

mod allotment;
mod churn;
mod codes;
mod data;
mod handed_on;
mod joining;
mod leases;
mod overview;
mod players;
mod publicity;
mod rejoin;
mod servers;
mod session;
mod starting;
mod starts;

const READY: (Method, &str) = (Method::POST, "lobbies/ready");
const CLOSED: (Method, &str) = (Method::PUT, "lobbies/closed");
const STATE: (Method, &str) = (Method::PUT, "lobbies/state");

/// A game with the mode `arena`, whose servers each test registers itself.
async fn game(stack: &TestStack, name: &str, arena: Value) -> TestGame {
    let mut mode = json!({ "regions": ["fra", "nyc"], "max_players": 4 });
    mode.as_object_mut().unwrap().extend(arena.as_object().unwrap().clone());
    stack.make_game(name, json!({ "arena": mode }), 1_000, 0).await
}

/// The status of a game server's call of `function` for the server `one`, by an instance whose calls of the
/// database go over `link`.
async fn serve_over(stack: &TestStack, game: &TestGame, link: Arc<dyn Link>, function: &str) -> u16 {
    send_over(stack, game, link, function, json!({ "server_id": "one" })).await
}

/// The same with another `body`.
async fn send_over(
    stack: &TestStack,
    game: &TestGame,
    link: Arc<dyn Link>,
    function: &str,
    body: Value,
) -> u16 {
    call_over(stack, link, function, &game.server, &body).await
}

/// The status of a call of `function` with a token, by such an instance.
async fn call_over(stack: &TestStack, link: Arc<dyn Link>, function: &str, token: &str, body: &Value) -> u16 {
    let store = Store::new(patient_client_over(link), table_names());
    let declared = Template::parse(TEMPLATE).unwrap().functions;
    let keys = Arc::clone(stack.stack.keys());
    let functions = Functions::new(store, declared, keys, stack.ambient(), Outside::default());
    let instance = functions.instance(&format!("functions/{function}")).unwrap();
    let bearer = format!("Bearer {token}");
    instance(event(&[("authorization", bearer.as_str())], body, &[])).await.status().as_u16()
}

/// The lobbies that a heartbeat lists.
fn listed(answer: &Answer) -> Vec<String> {
    let lobbies = answer.body["lobbies"].as_array().into_iter().flatten();
    lobbies.filter_map(|lobby| lobby["lobby_id"].as_str()).map(str::to_owned).collect()
}

/// Waits until the game has a lobby, and as long as its find waits until that is ready.
async fn never_ready(stack: &TestStack, game: &TestGame) {
    while stack.all_lobbies(game.namespace_id()).await.is_empty() {
        tokio::task::yield_now().await;
    }
    stack.clock.advance(Duration::from_secs(25));
}

async fn find(stack: &TestStack, game: &TestGame) -> Answer {
    game.find(stack, json!({ "game_modes": ["arena"], "regions": ["fra"] })).await
}

async fn find_existing(stack: &TestStack, game: &TestGame) -> Answer {
    let body = json!({ "game_modes": ["arena"], "regions": ["fra"], "prevent_auto_create_lobby": true });
    game.find(stack, body).await
}

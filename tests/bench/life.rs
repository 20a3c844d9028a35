//! `cargo bench -p muster-tests --bench life`: what each operation of a lobby's life asks of DynamoDB, and what lists and
//! statistics cost in a namespace that is full.
//!
//! Counted, not timed: the figures are the same on every machine. Each operation is warm: its settings are known.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{collections::BTreeMap, sync::Arc};

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use futures_util::future::join_all;
use muster_local::{functions::Functions, gateway::Handler, stack::TEMPLATE, template::Template};
use muster_tests::{TestGame, TestStack, instance::event};
use serde_json::{Value, json};
use shared::{
    ambient::Timestamp,
    ids::{LobbyId, SeatId},
    lobby::Lobby,
    models::ServerKey,
    store::meter::{Meter, Usage},
};
use tokio::sync::Mutex;

/// Prices of us-east-1 in dollars per million units (DynamoDB on demand), as of the design.
const WRITE_UNITS_PRICE: f64 = 0.625;
const READ_UNITS_PRICE: f64 = 0.125;
/// The most lobbies that a namespace may hold.
const FULL: usize = 32_767;
/// Lobbies of each server of the full namespace.
const LOBBIES_PER_SERVER: usize = 1_000;

/// All operations over one metered store, with a clock that stands still.
struct Bench {
    stack: TestStack,
    functions: Functions,
    /// One instance of each function that was called.
    instances: Mutex<BTreeMap<String, Handler>>,
    meter: Meter,
}

impl Bench {
    async fn start() -> Self {
        let stack = TestStack::start().await;
        let meter = Meter::on();
        let store = stack.store().metered(meter.clone());
        let keys = Arc::clone(stack.stack.keys());
        let permissions = Template::parse(TEMPLATE).expect("the template").permissions;
        let functions = Functions::new(store, permissions, keys, stack.ambient()).expect("the operations");
        Self { stack, functions, instances: Mutex::default(), meter }
    }

    async fn call(&self, function: &str, token: &str, body: &Value, parameters: &[(&str, &str)]) -> Value {
        let start = || self.functions.handler(&format!("functions/{function}")).expect("a function");
        let mut instances = self.instances.lock().await;
        let instance = Arc::clone(instances.entry(function.to_owned()).or_insert_with(start));
        drop(instances);
        let authorization = format!("Bearer {token}");
        let response = instance(event(&[("authorization", &authorization)], body, parameters)).await;
        let body: Value = serde_json::from_slice(response.body()).expect("a JSON body");
        assert_eq!(response.status(), 200, "{function}: {body}");
        body
    }

    /// One request, and a line about it.
    async fn line(
        &self,
        what: &str,
        function: &str,
        token: &str,
        body: Value,
        parameters: &[(&str, &str)],
    ) -> Value {
        let before = self.meter.usage();
        let answer = self.call(function, token, &body, parameters).await;
        print(what, self.meter.usage() - before);
        answer
    }
}

fn dollars(usage: Usage) -> f64 {
    usage.read_units * READ_UNITS_PRICE + usage.write_units * WRITE_UNITS_PRICE
}

fn print(what: &str, usage: Usage) {
    let Usage { calls, read_units, write_units } = usage;
    println!("| {what} | {calls} | {read_units} | {write_units} | {:.2} |", dollars(usage));
}

/// A lobby's life, one request after the other.
async fn life(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 4, "idle_seconds": 60,
                                   "actions": { "create": { "enabled": true } } } });
    let game = bench.stack.make_game("life", modes, 1_000, 0).await;
    let registration = |id: &str, auto_ready: bool| {
        json!({ "server_id": id, "region_id": "fra", "capacity": 100, "lease_seconds": 60, "auto_ready": auto_ready,
                "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } })
    };
    let (public, server) = (game.public.as_str(), game.server.as_str());
    let find = json!({ "game_modes": ["arena"] });
    let _warm = bench.call("register-server", server, &registration("other", true), &[]).await;
    bench.line("register a game server", "register-server", server, registration("one", true), &[]).await;
    let first = bench.call("find-lobby", public, &find, &[]).await;
    let lobby_id = first["lobby"]["lobby_id"].as_str().unwrap_or_default().to_owned();
    let lobby = game.lobby_token(&bench.stack, &lobby_id);
    let player = |seat: &Value| json!({ "player_token": seat["player"]["token"] });

    let join = json!({ "lobby_id": lobby_id });
    let second = bench.line("join", "join-lobby", public, join.clone(), &[]).await;
    let create = json!({ "game_mode": "arena" });
    bench.line("create a private lobby", "create-lobby", public, create, &[]).await;
    bench.line("connected", "connect-player", &lobby, player(&second), &[]).await;
    bench.line("set the state, first", "set-lobby-state", &lobby, json!({ "round": 1 }), &[]).await;
    bench.line("set the state, again", "set-lobby-state", &lobby, json!({ "round": 2 }), &[]).await;
    let path = [("lobby_id", lobby_id.as_str())];
    bench.line("get the state", "get-lobby-state", public, json!({}), &path).await;
    bench.line("close", "set-lobby-closed", &lobby, json!({ "is_closed": true }), &[]).await;
    bench.line("reopen", "set-lobby-closed", &lobby, json!({ "is_closed": false }), &[]).await;
    bench.line("disconnected", "disconnect-player", &lobby, player(&second), &[]).await;
    let mut last = Value::Null;
    for _ in 0..3 {
        last = bench.call("find-lobby", public, &find, &[]).await;
    }
    bench.call("connect-player", &lobby, &player(&last), &[]).await;
    bench.line("disconnected from a full lobby", "disconnect-player", &lobby, player(&last), &[]).await;
    bench.line("end a lobby with a state", "end-lobby", server, join, &[]).await;
    bench.line("regions", "list-regions", public, json!({}), &[]).await;

    // Without the mode's idle time, the last player takes the lobby along.
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 2 } });
    let game = bench.stack.make_game("solo", modes, 1_000, 100).await;
    let seat = bench.call("find-lobby", &game.public, &json!({ "game_modes": ["solo"] }), &[]).await;
    let lobby = game.lobby_token(&bench.stack, seat["lobby"]["lobby_id"].as_str().unwrap_or_default());
    bench.call("connect-player", &lobby, &player(&seat), &[]).await;
    bench.line("disconnected as the last player", "disconnect-player", &lobby, player(&seat), &[]).await;
}

/// What a game server of twenty lobbies costs in an hour, beating twice in a lease of a minute.
async fn heartbeats(bench: &Bench) {
    const BEATS_PER_HOUR: f64 = 120.0;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 } });
    let game = bench.stack.make_game("beats", modes, 1_000, 0).await;
    let registration = json!({ "server_id": "one", "region_id": "fra", "capacity": 20, "lease_seconds": 60,
        "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } });
    bench.call("register-server", &game.server, &registration, &[]).await;
    for _ in 0..20 {
        bench.call("find-lobby", &game.public, &json!({ "game_modes": ["solo"] }), &[]).await;
    }
    let beat = json!({ "server_id": "one" });
    let second = std::time::Duration::from_secs(1);
    bench.stack.clock.advance(second / 10);
    bench.call("heartbeat-server", &game.server, &beat, &[]).await;
    bench.stack.clock.advance(second / 10);
    let before = bench.meter.usage();
    bench.call("heartbeat-server", &game.server, &beat, &[]).await;
    let usage = bench.meter.usage() - before;
    print("heartbeat of a server of 20 lobbies", usage);
    println!(
        "\nA server of 20 lobbies, 120 beats an hour: ${:.5} an hour.",
        dollars(usage) * BEATS_PER_HOUR / 1e6
    );
}

/// Fills a namespace to the last lobby, past every operation.
async fn fill(bench: &Bench, game: &TestGame) {
    let store = bench.stack.store();
    let modes = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    let seat = game.find(&bench.stack, modes).await.expect_ok();
    let template = game.lobby(&bench.stack, &seat.lobby_id()).await;
    let servers = FULL.div_ceil(LOBBIES_PER_SERVER);
    for n in 0..servers {
        let places = u32::try_from(LOBBIES_PER_SERVER + 1).unwrap_or(u32::MAX);
        game.add_server(&bench.stack, &format!("full-{n}"), "fra", places, Timestamp::NEVER).await;
        let key = ServerKey {
            server_id: format!("full-{n}").parse().expect("an id"),
            ..template.server.clone().expect("a server")
        };
        let mut server = store.server(&key).await.expect("a read").expect("a server");
        let seen = server.clone();
        server.used = u32::try_from(LOBBIES_PER_SERVER).unwrap_or(u32::MAX);
        assert!(store.replace_server(&server, &seen).await.expect("a write"));
    }
    let ambient = bench.stack.ambient();
    let lobby = |n: usize| {
        let reserved = (0..4).map(|_| (SeatId::random(&ambient), template.first_lapse())).collect();
        let server_id = format!("full-{}", n / LOBBIES_PER_SERVER).parse().expect("an id");
        Lobby {
            lobby_id: LobbyId::from(ambient.uuid()),
            server: template.server.clone().map(|key| ServerKey { server_id, ..key }),
            taken: 4,
            reserved,
            ..template.clone()
        }
    };
    let lobbies: Vec<Lobby> = (1..FULL).map(lobby).collect();
    for lobbies in lobbies.chunks(25 * 16) {
        join_all(lobbies.chunks(25).map(|lobbies| async move {
            let put = |lobby: &Lobby| {
                let item = serde_dynamo::to_item(lobby).expect("an item");
                let put = PutRequest::builder().set_item(Some(item)).build().expect("a put");
                WriteRequest::builder().put_request(put).build()
            };
            let requests = lobbies.iter().map(put).collect();
            let write = store.client().batch_write_item();
            let tables = std::collections::HashMap::from([(store.tables().lobbies.clone(), requests)]);
            let answer = write.set_request_items(Some(tables)).send().await.expect("a write");
            assert!(answer.unprocessed_items().is_none_or(std::collections::HashMap::is_empty));
        }))
        .await;
    }
}

async fn overviews(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 10, "reservation_seconds": 600 } });
    let game = bench.stack.make_game("full", modes, 32_767, 2).await;
    fill(bench, &game).await;
    bench.call("list-regions", &game.public, &json!({}), &[]).await;
    let list =
        bench.line(&format!("list, {FULL} lobbies live"), "list-lobbies", &game.public, json!({}), &[]).await;
    assert_eq!(list["lobbies"].as_array().map(Vec::len), Some(500));
    bench.line("list, within 5 s", "list-lobbies", &game.public, json!({}), &[]).await;
    let what = format!("statistics, {FULL} lobbies live: the count");
    let count = bench.line(&what, "get-player-statistics", &game.public, json!({}), &[]).await;
    assert_eq!(count["player_count"], 4 * (FULL - 1) + 1);
    bench.line("statistics, within 5 s", "get-player-statistics", &game.public, json!({}), &[]).await;
    let what = "statistics, within 5 s on another instance";
    bench.instances.lock().await.clear();
    bench.line(what, "get-player-statistics", &game.public, json!({}), &[]).await;
}

#[tokio::main]
async fn main() {
    let bench = Bench::start().await;
    println!(
        "| operation | calls | read units | write units | $ per million (DynamoDB) |\n|---|---|---|---|---|"
    );
    life(&bench).await;
    overviews(&bench).await;
    heartbeats(&bench).await;
}

//! `cargo bench --bench cost`: the calls and the cost of each operation, written to `tests/bench/cost.md`.
//!
//! `management` counts the operations that manage games, `hostile` requests that are refused. A function of
//! the template that none of them called is an error. `month` counts what `muster cost` and
//! `infra/docs/cost.md` reckon with.
//!
//! Counted, not timed: with the same identifiers and times in each run the figures are the same on every
//! machine, so that `-- --check` compares them with the committed report and fails where they differ. Each
//! operation is warm: its settings are known.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use futures_util::future::join_all;
use harness::{
    TestGame, TestStack, gunzip,
    instance::{Instance, event, event_from, query_event},
    new_game,
    prices::Cost,
};
use muster::cost::month::Work;
use muster_local::{functions::Functions, gateway::Handler, stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::{
    base::{ambient::Timestamp, usage::Usage},
    models::{
        ids::{LobbyId, SeatId, ServerKey},
        lobby::Lobby,
    },
    outside::{endpoints::Outside, web_client::Reach},
    overview::LISTED_MAX,
    store::meter::Meter,
};
use tokio::sync::Mutex;

/// Where the report lies.
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cost.md");
/// What the operator's command reckons with.
const COUNTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/operator/src/cost/counted.json");
/// Pages that say what a month costs.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/docs/cost.md");
const FIRST_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
/// The page that promises what refusals cost at most.
const PROMISE_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/docs/operating.md");
/// Around what is written into them.
const MARKS: [&str; 2] = ["<!-- counted -->", "<!-- /counted -->"];
/// The most lobbies that a namespace may hold.
const FULL: usize = 32_767;
/// Lobbies of each server of the full namespace.
const LOBBIES_PER_SERVER: usize = 1_000;

mod hostile;
mod management;
mod month;
mod starts;

/// All operations over one metered store, with a clock that stands still.
struct Bench {
    stack: TestStack,
    functions: Functions,
    /// Functions of the template that were not called yet.
    uncounted: Mutex<BTreeSet<String>>,
    /// One instance of each function that was called.
    instances: Mutex<BTreeMap<String, Handler>>,
    meter: Meter,
    /// Bytes of the body of the last response to a call.
    sent_bytes: AtomicUsize,
    report: Mutex<String>,
    /// The most bytes of a list.
    list_bytes_max: AtomicUsize,
    /// What was refused, and what each cost.
    refusals: Mutex<Vec<(String, Cost)>>,
}

impl Bench {
    /// Operations that call providers and backends `outside`.
    async fn start(outside: Outside) -> Self {
        let stack = TestStack::start_repeatable().await;
        let meter = Meter::on();
        let store = stack.store().metered(meter.clone());
        let keys = Arc::clone(stack.stack.keys());
        let declared = Template::parse(TEMPLATE).expect("the template").functions;
        let name = |code_uri: &String| code_uri.trim_start_matches("functions/").to_owned();
        let uncounted = Mutex::new(declared.keys().map(name).collect());
        let functions = Functions::new(store, declared, keys, stack.ambient(), outside);
        Self {
            stack,
            functions,
            uncounted,
            instances: Mutex::default(),
            meter,
            sent_bytes: AtomicUsize::default(),
            list_bytes_max: AtomicUsize::default(),
            report: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    async fn instance(&self, function: &str) -> Handler {
        let start = || self.functions.instance(&format!("functions/{function}")).expect("a function");
        let mut instances = self.instances.lock().await;
        Arc::clone(instances.entry(function.to_owned()).or_insert_with(start))
    }

    /// Has `functions` know the settings of `game`, as warm ones do.
    async fn warm(&self, functions: &[&str], game: &TestGame) {
        for function in functions {
            self.instance(function).await;
        }
        self.functions.know_settings(game.game_id(), game.namespace_id()).await.expect("settings");
    }

    async fn call(&self, function: &str, token: &str, body: &Value, parameters: &[(&str, &str)]) -> Value {
        self.uncounted.lock().await.remove(function);
        let instance = self.instance(function).await;
        let authorization = format!("Bearer {token}");
        let response = instance(event(&[("authorization", &authorization)], body, parameters)).await;
        self.sent_bytes.store(response.body().len(), Ordering::Relaxed);
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
        self.note(what, self.cost_since(before)).await;
        answer
    }

    /// The cost of the last call, the only one since `before`.
    fn cost_since(&self, before: Usage) -> Cost {
        Cost::of(self.meter.usage() - before, self.sent_bytes.load(Ordering::Relaxed))
    }

    /// Text between the tables.
    async fn say(&self, text: &str) {
        print!("{text}");
        self.report.lock().await.push_str(text);
    }

    async fn note(&self, what: &str, cost: Cost) {
        let Cost { calls, read_units, write_units, sent_bytes } = cost;
        let line = format!(
            "| {what} | {calls} | {read_units} | {write_units} | {sent_bytes:.0} | {:.2} | {:.2} | {:.2} |",
            cost.dynamodb(),
            cost.data_sent(),
            cost.total()
        );
        println!("{line}");
        let mut report = self.report.lock().await;
        report.push_str(&line);
        report.push('\n');
    }

    /// Another instance of each function, which remembers nothing but the settings.
    async fn forget(&self) {
        self.instances.lock().await.clear();
    }
}

/// Finds of one isolated instance, as they come ten a second, one at a time, and under load.
async fn finds(bench: &Bench) {
    const FINDS: usize = 1_000;
    let pause = Duration::from_millis(100);
    let modes = json!({
        "four": { "regions": ["fra"], "max_players": 4, "reservation_seconds": 600 },
        "ten": { "regions": ["fra"], "max_players": 10, "reservation_seconds": 600 },
    });
    let game = bench.stack.make_game("finds", modes, 32_767, 1_000).await;
    let instance = bench.stack.instance();
    instance.warm_up(&game.public, &game.pool("four", "fra")).await;
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let find = async |instance: &Instance, mode: &str| {
        let (status, cost) = instance.cost(event(&headers, &json!({ "game_modes": [mode] }), &[])).await;
        assert_eq!(status, 200, "a seat");
        cost
    };
    let find_later = async |instance: &Instance, mode: &str| {
        bench.stack.clock.advance(pause);
        find(instance, mode).await
    };
    let mut costs = Vec::new();
    for _ in 0..13 {
        costs.push(find_later(&instance, "four").await);
    }
    // Lobbies of four, the first one with the first block; the second block is one, too, the third one is
    // two.
    for (what, nth) in [
        ("find: joins", 1),
        ("find: takes the last seat, which it saw left", 3),
        ("find: creates a lobby, with a block of the cap", 0),
        ("find: creates a lobby, of what its server has left of the cap", 12),
    ] {
        bench.note(what, costs[nth]).await;
    }
    let other = bench.stack.instance();
    other.warm_up(&game.public, &game.pool("ten", "fra")).await;
    for _ in 0..2 {
        find_later(&instance, "four").await;
    }
    let what = "find: takes the last seat of a lobby it did not know";
    bench.note(what, find_later(&other, "four").await).await;
    let prevented = json!({ "game_modes": ["ten"], "prevent_auto_create_lobby": true });
    let (status, cost) = other.cost(event(&headers, &prevented, &[])).await;
    assert_eq!(status, 400, "nothing is there");
    bench.note("find: refused, creation prevented", cost).await;

    // Past the first blocks, which double up to a 64th of the cap.
    for _ in 0..FINDS {
        find_later(&instance, "ten").await;
    }
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..FINDS {
        quiet.push(find_later(&instance, "ten").await);
    }
    bench.note("find: the mean of ten a second into lobbies of ten", Cost::mean(&quiet)).await;
    for _ in 0..FINDS {
        busy.push(find(&instance, "ten").await);
    }
    bench.note("find: the mean under load into lobbies of ten", Cost::mean(&busy)).await;
}

/// Finds with the client's latencies, of four regions within the mode's tolerance.
async fn latencies(bench: &Bench) {
    let ids = ["fra", "nyc", "sfo", "syd"];
    let mode = json!({ "regions": ids, "max_players": 10, "reservation_seconds": 600 });
    let mut new = new_game("latencies", json!({ "ten": { "regions": ["fra"] } }), 32_767);
    new.config = serde_json::from_value(json!({ "game_modes": { "ten": mode } })).expect("a configuration");
    let some = new.regions.values().next().cloned().expect("a region");
    new.regions = ids.map(|id| (id.parse().expect("an id"), some.clone())).into();
    let game = bench.stack.make_game_of(new, 0).await;
    for id in ["nyc", "sfo", "syd"] {
        game.add_server(&bench.stack, id, id, 1_000, Timestamp::NEVER).await;
    }
    let instance = bench.stack.instance();
    instance.warm_up(&game.public, &game.pool("ten", "nyc")).await;
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let find = async |latencies: Value| {
        bench.stack.clock.advance(Duration::from_secs(5));
        let body = json!({ "game_modes": ["ten"], "latencies": latencies });
        let (status, cost) = instance.cost(event(&headers, &body, &[])).await;
        assert_eq!(status, 200, "a seat");
        cost
    };
    let near = json!({ "fra": 20, "nyc": 30, "sfo": 40, "syd": 50 });
    let what =
        "find with latencies of four regions: creates a lobby in the second, the first has no game server";
    bench.note(what, find(near.clone()).await).await;
    bench.note("find with latencies of four regions: joins", find(near).await).await;
}

/// Parties, beside more lobbies with one free seat than any look shows, and what they cost players alone.
async fn parties(bench: &Bench) {
    const FINDS: usize = 1_000;
    const BESIDE: usize = 10_000;
    let modes = json!({
        "ten": { "regions": ["fra"], "max_players": 10, "party_size_max": 4, "reservation_seconds": 600 },
        "five": { "regions": ["fra"], "max_players": 5, "party_size_max": 2, "reservation_seconds": 600 },
    });
    let game = bench.stack.make_game("parties", modes, 32_767, 32_767).await;
    let instance = bench.stack.instance();
    instance.warm_up(&game.public, &game.pool("ten", "fra")).await;
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let find = async |mode: &str, party_size: u32| {
        bench.stack.clock.advance(Duration::from_millis(100));
        let body = json!({ "game_modes": [mode], "party_size": party_size });
        let (status, cost) = instance.cost(event(&headers, &body, &[])).await;
        assert_eq!(status, 200, "a seat");
        cost
    };
    let find_id = async |mode: &str, party_size: u32| {
        let body = json!({ "game_modes": [mode], "party_size": party_size });
        game.find(&bench.stack, body).await.expect_ok().lobby_id()
    };
    bench.note("find of a party of two: creates a lobby", find("ten", 2).await).await;
    bench.note("find of a party of two: joins", find("ten", 2).await).await;
    let mut alone = Vec::new();
    for _ in 0..FINDS {
        alone.push(find("ten", 1).await);
    }
    let what = "find of a player alone, where parties may be: the mean of ten a second into lobbies of ten";
    bench.note(what, Cost::mean(&alone)).await;
    let mut mixed = Vec::new();
    for nth in 0..FINDS {
        mixed.push(find("ten", 1 + u32::try_from(nth * 7 % 4).expect("a size")).await);
    }
    let what = "find of one to four players: the mean of ten a second into lobbies of ten";
    bench.note(what, Cost::mean(&mixed)).await;
    let id = find_id("five", 2).await;
    find("five", 2).await;
    let almost_full = game.lobby(&bench.stack, &id).await;
    assert_eq!((almost_full.taken, almost_full.room), (4, None));
    let ambient = bench.stack.ambient();
    let beside = |_| Lobby { lobby_id: LobbyId::from(ambient.uuid()), ..almost_full.clone() };
    put_lobbies(bench, &(1..BESIDE).map(beside).collect::<Vec<_>>()).await;
    let mut pairs = Vec::new();
    for _ in 0..FINDS {
        pairs.push(find("five", 2).await);
    }
    let what = "find of a party of two: the mean of ten a second into lobbies of five, beside 10,000 with one free seat";
    bench.note(what, Cost::mean(&pairs)).await;
}

/// What players cost who come back, in a lobby of ten whose mode keeps seats.
async fn comebacks(bench: &Bench) {
    let mode = json!({ "regions": ["fra"], "max_players": 10, "keep_seconds": 30 });
    let game = bench.stack.make_game("comebacks", json!({ "ten": mode }), 9, 9).await;
    bench.warm(&["rejoin-player", "connect-player", "disconnect-player"], &game).await;
    let find = async || game.find(&bench.stack, json!({ "game_modes": ["ten"] })).await.expect_ok();
    let (stays, seat) = (find().await, find().await);
    game.connect(&bench.stack, &stays).await.expect_ok();
    let lobby = game.lobby_token(&bench.stack, &seat.lobby_id());
    let shown = |answer: &Value| json!({ "player_token": answer["player"]["token"] });
    let first = shown(&seat.body);
    bench.call("rejoin-player", "", &first, &[]).await;
    bench.line("rejoin before connecting", "rejoin-player", "", first.clone(), &[]).await;
    bench.call("connect-player", &lobby, &first, &[]).await;
    let back = bench.line("rejoin while connected", "rejoin-player", "", first, &[]).await;
    bench.line("connected, with a newer token", "connect-player", &lobby, shown(&back), &[]).await;
    let what = "disconnected, in a mode with keep_seconds";
    bench.line(what, "disconnect-player", &lobby, shown(&back), &[]).await;
    let back = bench.line("rejoin to a kept seat", "rejoin-player", "", shown(&back), &[]).await;
    bench.call("connect-player", &lobby, &shown(&back), &[]).await;
    let mut keeping = shown(&back);
    keeping["keep_seconds"] = json!(60);
    bench.line("disconnected with keep_seconds", "disconnect-player", &lobby, keeping, &[]).await;
}

/// What a cap on a client's seats and an `Idempotency-Key` add to a find that joins a lobby.
async fn clients(bench: &Bench) {
    const CAP: u32 = 8;
    let modes = json!({
        "hall": { "regions": ["fra"], "max_players": 64, "reservation_seconds": 600 },
        "none": { "regions": ["fra"] },
    });
    let game_of = async |name: &str, cap: u32| {
        let mut new = new_game(name, modes.clone(), 32_767);
        new.namespaces[0].max_players_per_client = cap;
        bench.stack.make_game_of(new, 1_000).await
    };
    let (free, capped) = (game_of("free", u32::MAX).await, game_of("capped", CAP).await);
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    for game in [&free, &capped] {
        let instance = bench.stack.instance();
        assert_eq!(instance.cost(find_event(game, elsewhere, None)).await.0, 200);
    }
    let instance = bench.stack.instance();
    for game in [&free, &capped] {
        instance.warm_up(&game.public, &game.pool("none", "fra")).await;
    }
    for (what, game, key) in [
        ("find with an Idempotency-Key: joins", &free, Some("a")),
        ("find with an Idempotency-Key: answered again", &free, Some("a")),
        ("find under a cap: joins", &capped, None),
        ("find under a cap, with an Idempotency-Key: joins", &capped, Some("b")),
    ] {
        bench.stack.clock.advance(Duration::from_millis(100));
        let (status, cost) = instance.cost(find_event(game, Ipv4Addr::LOCALHOST, key)).await;
        assert_eq!(status, 200, "{what}");
        bench.note(what, cost).await;
    }
    let again = find_event(&capped, Ipv4Addr::LOCALHOST, Some("b")).into();
    let seat = instance.call(&again).await.expect("the seat of the last one");
    let lobby_token = capped.lobby_token(&bench.stack, seat.lobby.lobby_id.as_str());
    bench.warm(&["disconnect-player"], &capped).await;
    let disconnected = json!({ "player_token": seat.player.token });
    bench.line("disconnected, under a cap", "disconnect-player", &lobby_token, disconnected, &[]).await;
    bench.stack.clock.advance(Duration::from_millis(100));
    let given_up =
        instance.call(&find_event(&capped, Ipv4Addr::LOCALHOST, None).into()).await.expect("a seat");
    let given_up = json!({ "player_token": given_up.player.token });
    bench.line("a seat given up, under a cap", "leave-lobby", "", given_up, &[]).await;
    let find = || instance.cost(find_event(&capped, Ipv4Addr::LOCALHOST, None));
    while find().await.0 == 200 {}
    let (status, cost) = find().await;
    assert_eq!(status, 400, "at its cap");
    bench.note("find at its client's cap of 8: refused", cost).await;
    bench.stack.clock.advance(Duration::from_secs(601));
    instance.warm_up(&capped.public, &capped.pool("none", "fra")).await;
    let (status, cost) = find().await;
    assert_eq!(status, 200, "a seat");
    let what = "find at its client's cap of 8, all of whose seats have lapsed: creates a lobby";
    bench.note(what, cost).await;
    bench.warm(&["remove-player"], &capped).await;
    bench.stack.clock.advance(Duration::from_millis(100));
    let removed =
        instance.call(&find_event(&capped, Ipv4Addr::LOCALHOST, None).into()).await.expect("a seat");
    let lobby = capped.lobby_token(&bench.stack, removed.lobby.lobby_id.as_str());
    let removed = json!({ "player_token": removed.player.token });
    bench.line("a player removed, under a cap", "remove-player", &lobby, removed, &[]).await;
}

/// A find from a client's address, under a key if it has one.
fn find_event(game: &TestGame, address: Ipv4Addr, key: Option<&str>) -> lambda_http::Request {
    let authorization = format!("Bearer {}", game.public);
    let mut headers = vec![("authorization", authorization.as_str())];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    event_from(address, &headers, &json!({ "game_modes": ["hall"], "regions": ["fra"] }), &[])
}

/// The operations of a lobby's life.
const LIFE: [&str; 10] = [
    "join-lobby",
    "create-lobby",
    "connect-player",
    "set-lobby-state",
    "get-lobby-state",
    "set-lobby-closed",
    "set-lobby-publicity",
    "disconnect-player",
    "end-lobby",
    "list-regions",
];

/// A lobby's life, one request after the other.
async fn life(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 4, "idle_seconds": 60,
                                   "actions": { "create": { "enabled": true } } } });
    let game = bench.stack.make_game("life", modes, 1_000, 0).await;
    bench.warm(&LIFE, &game).await;
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
    // Within one millisecond it would be taken for one that came before the close, and be written twice.
    bench.stack.clock.advance(Duration::from_millis(1));
    bench.line("reopen", "set-lobby-closed", &lobby, json!({ "is_closed": false }), &[]).await;
    bench.stack.clock.advance(Duration::from_millis(1));
    let publicity = |to: &str| json!({ "publicity": to });
    bench.line("make private", "set-lobby-publicity", &lobby, publicity("private"), &[]).await;
    bench.stack.clock.advance(Duration::from_millis(1));
    bench.line("make public", "set-lobby-publicity", &lobby, publicity("public"), &[]).await;
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
    bench.warm(&LIFE, &game).await;
    bench.line("disconnected as the last player", "disconnect-player", &lobby, player(&seat), &[]).await;
}

/// The cost of a game server of twenty lobbies per hour, with two heartbeats in a lease of a minute. Returns
/// the work of one.
async fn heartbeats(bench: &Bench) -> Work {
    const HEARTBEATS_PER_HOUR: f64 = 120.0;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 } });
    let game = bench.stack.make_game("beats", modes, 1_000, 0).await;
    let registration = json!({ "server_id": "one", "region_id": "fra", "capacity": 20, "lease_seconds": 60,
        "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } });
    bench.call("register-server", &game.server, &registration, &[]).await;
    for _ in 0..20 {
        bench.call("find-lobby", &game.public, &json!({ "game_modes": ["solo"] }), &[]).await;
    }
    let body = json!({ "server_id": "one" });
    let second = Duration::from_secs(1);
    bench.stack.clock.advance(second / 10);
    bench.call("heartbeat-server", &game.server, &body, &[]).await;
    bench.stack.clock.advance(second / 10);
    let before = bench.meter.usage();
    bench.call("heartbeat-server", &game.server, &body, &[]).await;
    let cost = bench.cost_since(before);
    bench.note("heartbeat of a server of 20 lobbies", cost).await;
    let hour = format!(
        "\nA server of 20 lobbies, 120 heartbeats an hour: ${:.5} an hour of DynamoDB, ${:.5} in all.\n",
        cost.dynamodb() * HEARTBEATS_PER_HOUR / 1e6,
        cost.total() * HEARTBEATS_PER_HOUR / 1e6
    );
    bench.say(&hour).await;
    month::heartbeat(bench, &game).await
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
        server.allotted = server.used;
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
    put_lobbies(bench, &(1..FULL).map(lobby).collect::<Vec<_>>()).await;
}

/// Writes lobbies past every operation.
async fn put_lobbies(bench: &Bench, lobbies: &[Lobby]) {
    let store = bench.stack.store();
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
    bench.warm(&["list-lobbies", "get-player-statistics"], &game).await;
    let list = list(bench, &format!("list, {FULL} lobbies live: 100 of them"), &game, &[], None).await;
    assert_eq!(list["lobbies"].as_array().map(Vec::len), Some(100));
    for (what, accepted) in [("list, within 5 s", None), ("list, within 5 s, in gzip", Some("gzip"))] {
        self::list(bench, what, &game, &[], accepted).await;
    }
    self::list(bench, "list of 500 lobbies, within 5 s", &game, &[("limit", "500")], None).await;
    let what = format!("statistics, {FULL} lobbies live: the count");
    let count = bench.line(&what, "get-player-statistics", &game.public, json!({}), &[]).await;
    assert_eq!(count["player_count"], 4 * (FULL - 1) + 1);
    bench.line("statistics, within 5 s", "get-player-statistics", &game.public, json!({}), &[]).await;
    let what = "statistics, within 5 s on another instance";
    bench.forget().await;
    bench.warm(&["get-player-statistics"], &game).await;
    bench.line(what, "get-player-statistics", &game.public, json!({}), &[]).await;
}

/// A list with these query parameters for a client that accepts this encoding, and a line about it.
async fn list(
    bench: &Bench,
    what: &str,
    game: &TestGame,
    query: &[(&str, &str)],
    accepted: Option<&str>,
) -> Value {
    let public = format!("Bearer {}", game.public);
    let mut headers = vec![("authorization", public.as_str())];
    headers.extend(accepted.map(|encoding| ("accept-encoding", encoding)));
    bench.uncounted.lock().await.remove("list-lobbies");
    let instance = bench.instance("list-lobbies").await;
    let before = bench.meter.usage();
    let response = instance(query_event(&headers, query)).await;
    assert_eq!(response.status(), 200, "{what}");
    bench.list_bytes_max.fetch_max(response.body().len(), Ordering::Relaxed);
    bench.note(what, Cost::of(bench.meter.usage() - before, response.body().len())).await;
    let is_encoded = response.headers().contains_key("content-encoding");
    let body = if is_encoded { gunzip(response.body()) } else { response.body().to_vec() };
    serde_json::from_slice(&body).expect("a JSON body")
}

/// Lists of a hundred lobbies with large states.
async fn states(bench: &Bench) {
    const LOBBIES: usize = 100;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 } });
    let game = bench.stack.make_game("states", modes, 32_767, 1_000).await;
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..LOBBIES {
        let seat = bench.call("find-lobby", &game.public, &json!({ "game_modes": ["arena"] }), &[]).await;
        let lobby_id = seat["lobby"]["lobby_id"].as_str().unwrap_or_default();
        let path = (http::Method::PUT, "lobbies/state");
        game.host(&bench.stack, lobby_id, path, state(&mut random)).await.expect_ok();
    }
    bench.warm(&["list-lobbies"], &game).await;
    let list = async |what: &str, query: &[(&str, &str)], accepted: Option<&str>| {
        let list = list(bench, &format!("list of {what}"), &game, query, accepted).await;
        let lobbies = list["lobbies"].as_array().expect("lobbies");
        (lobbies.len(), lobbies.iter().filter(|lobby| lobby.get("state").is_some()).count())
    };
    assert_eq!(list("100 lobbies", &[], None).await, (LOBBIES, 0));
    let with_states = [("include_state", "true")];
    let what = "100 lobbies with states of 60 KB each, of which four fit";
    assert_eq!(list(what, &with_states, None).await, (LOBBIES, 4));
    assert_eq!(list(&format!("{what}; again, in gzip"), &with_states, Some("gzip")).await, (LOBBIES, 4));
    for _ in LOBBIES..LISTED_MAX {
        bench.call("find-lobby", &game.public, &json!({ "game_modes": ["arena"] }), &[]).await;
    }
    bench.forget().await;
    bench.warm(&["list-lobbies"], &game).await;
    let most = [("include_state", "true"), ("limit", "500")];
    assert_eq!(list("500 lobbies, 100 of them with such states", &most, None).await.0, LISTED_MAX);
}

/// A state of 60 KB, as a game might write it: names and figures that only its lobby has.
fn state(random: &mut fastrand::Rng) -> Value {
    const BYTES: usize = 60_000;
    let mut state = json!({ "map": "harbour", "players": [] });
    let mut bytes = state.to_string().len();
    while bytes < BYTES {
        let name: String = (0..8).map(|_| random.alphanumeric()).collect();
        let player = json!({ "name": name, "score": random.u32(..10_000), "x": random.u32(..4_096),
                             "y": random.u32(..4_096), "is_alive": random.bool() });
        bytes += player.to_string().len() + 1;
        state["players"].as_array_mut().expect("an array").push(player);
    }
    state
}

const HEAD: &str = "\
# What the operations cost

Counted by `cargo bench --bench cost` over the embedded database, as DynamoDB counts; dollars per million requests,
of DynamoDB alone, of the bytes sent, and with Lambda (128 MB, arm64, 2 ms and 5 ms a call) and HTTP API, at the prices of
`infra/console/src/prices.rs`. The bytes are those of the response's body; its headers are some 230 more, or $0.02. Logs, metrics
and traces are not in it; finds are without a per-client cap and `Idempotency-Key` unless said.

| operation | calls | read units | write units | bytes | DynamoDB | data | all |
|---|---|---|---|---|---|---|---|
";

#[tokio::main]
async fn main() -> ExitCode {
    let provider = hostile::refusing_provider().await;
    let outside = Outside { hcaptcha_url: provider.uri(), reach: Reach::Anywhere, ..Outside::default() };
    let bench = Bench::start(outside).await;
    print!("{HEAD}");
    finds(&bench).await;
    clients(&bench).await;
    life(&bench).await;
    overviews(&bench).await;
    states(&bench).await;
    let heartbeat = heartbeats(&bench).await;
    management::operations(&bench).await;
    hostile::refusals(&bench).await;
    // Last, so that the identifiers drawn for the lines above stay the same.
    latencies(&bench).await;
    comebacks(&bench).await;
    parties(&bench).await;
    starts::on_demand(&bench).await;
    let uncounted = bench.uncounted.lock().await;
    assert!(uncounted.is_empty(), "no line counts these: {uncounted:?}");
    let report = format!("{HEAD}{}", bench.report.lock().await);
    let counted = month::count(&bench, heartbeat).await;
    let tables = month::tables(&counted);
    println!("\n{tables}");
    let json = serde_json::to_string_pretty(&counted).expect("JSON");
    let files = [
        (REPORT, report),
        (COUNTED, format!("{json}\n")),
        (PAGE, marked(PAGE, &format!("\n{tables}"))),
        (FIRST_PAGE, marked(FIRST_PAGE, &month::sentence(&counted))),
        (PROMISE_PAGE, marked(PROMISE_PAGE, &hostile::promise(&bench).await)),
    ];
    if !std::env::args().any(|argument| argument == "--check") {
        for (path, text) in files {
            std::fs::write(path, text).expect("the report is written");
        }
        return ExitCode::SUCCESS;
    }
    let mut is_committed = true;
    for (path, text) in files {
        let committed = std::fs::read_to_string(path).expect("a committed report");
        if committed != text {
            let differing = text.lines().filter(|line| !committed.lines().any(|old| old == *line));
            println!("\nother than in the committed {path}:\n{}", differing.collect::<Vec<_>>().join("\n"));
            is_committed = false;
        }
    }
    if is_committed {
        println!("\nas committed");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The page at `path` with `text` between its marks.
fn marked(path: &str, text: &str) -> String {
    let page = std::fs::read_to_string(path).expect("a page");
    let [begin, end] = MARKS;
    let (before, rest) = page.split_once(begin).expect("a mark where it begins");
    let (_, after) = rest.split_once(end).expect("a mark where it ends");
    format!("{before}{begin}{text}{end}{after}")
}

//! `cargo bench --bench find`: a find's calls of DynamoDB, its cost, and how long it takes against one raw
//! conditional write through the same client.
//!
//! `-- --alone`, `--from-empty`, `--beside` and `--http` measure one part each.
//!
//! Calls, units, lobbies and cost are measured over isolated function instances, one request at a time each,
//! with nothing shared but the tables, as Lambda runs them. Times are ratios within one run: machines differ.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    collections::{BTreeMap, HashMap},
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::types::{
    AttributeValue, PutRequest, ReturnValue, ReturnValuesOnConditionCheckFailure, WriteRequest,
};
use futures_util::future::join_all;
use harness::{
    TestGame, TestStack,
    instance::{Instance, request},
    live_lobbies,
    lobby_host::LobbyHost,
    prices::Cost,
};
use serde_json::json;
use shared::{
    auth::{
        keys::TokenKeys,
        matchmaker::MatchmakerAuth,
        settings::{SETTINGS_AGE_MAX, SettingsCache},
    },
    base::{
        ambient::{Ambient, Timestamp},
        usage::Usage,
    },
    hosting::game_server::GameServers,
    models::{
        ids::LobbyId,
        lobby::Lobby,
        token::{Claims, Credential, TokenKind},
    },
    store::{client::Store, meter::metered},
    wire::FindLobbyResponse,
};

/// Finds of each timed run over HTTP, and of each timed run of creations.
const HTTP_FINDS: usize = 4_000;
const CREATIONS: usize = 1_000;
/// Seats of the lobbies that finds are measured beside, and how long a seat there waits for its player.
const BESIDE_SEATS: u32 = 2;
const BESIDE_RESERVATION: Duration = Duration::from_secs(10);
/// When nothing is left of a launch but its full lobbies.
const LAUNCH_OVER: Duration = Duration::from_secs(60);
/// How many of them real finds make, at most: the others are copies.
const BESIDE_REAL_MAX: usize = 2_000;

/// A clock that steps on request, for finds that come seconds apart.
#[derive(Clone)]
struct SteppedClock(Arc<AtomicU64>);

impl SteppedClock {
    fn now() -> Self {
        Self(Arc::new(AtomicU64::new(Ambient::system().now().0)))
    }

    fn step(&self, span: Duration) {
        self.0.fetch_add(u64::try_from(span.as_millis()).expect("a short span"), Ordering::Relaxed);
    }

    fn ambient(&self) -> Ambient {
        let clock = self.clone();
        Ambient::system().with_clock(move || Timestamp(clock.0.load(Ordering::Relaxed)))
    }
}

struct Bench {
    stack: TestStack,
    keys: Arc<TokenKeys>,
    games: u32,
}

impl Bench {
    async fn start() -> Self {
        let stack = TestStack::start_live().await;
        Self { stack, keys: Arc::new(TokenKeys::new(&[7; 32], None).expect("a key")), games: 0 }
    }

    async fn game(&mut self) -> (TestGame, String) {
        self.game_of(10, Duration::from_secs(600)).await
    }

    async fn game_of(&mut self, max_players: u32, reservation: Duration) -> (TestGame, String) {
        self.games += 1;
        let modes = json!({ "arena": { "regions": ["fra"], "max_players": max_players,
            "reservation_seconds": reservation.as_secs() } });
        let game = self.stack.make_game(&format!("bench-{}", self.games), modes, 32_767, 100_000).await;
        // As the operation registers a server: with a block of the cap.
        let placement = game.pool("arena", "fra").placement(None);
        let (servers, _) = self.stack.store().servers(&placement, None).await.expect("servers");
        for server in servers {
            self.stack.store().allot_at_registration(&server, 32_767).await.expect("a block");
        }
        let kind = shared::models::token::CredentialKind::Public;
        let token = self.keys.issue_credential(
            kind,
            &Credential::fresh(game.game_id(), game.namespace_id(), &Ambient::system()),
        );
        (game, token)
    }

    /// A lobby with ten seats taken that nothing else uses.
    async fn raw_lobby(&mut self) -> String {
        let (_game, token) = self.game().await;
        let instance = self.instance(&Ambient::system());
        warm(&instance, &token).await
    }

    fn instance(&self, ambient: &Ambient) -> Instance {
        Instance::new(self.stack.stack.store_endpoint(), &self.keys, ambient)
    }

    fn host(&self, ambient: &Ambient, game: &TestGame) -> LobbyHost {
        LobbyHost::new(self.stack.store().clone(), &self.keys, ambient, game.game_id().clone())
    }

    /// What the game server does, for all its lobbies.
    async fn send_heartbeat(&self, game: &TestGame, ambient: &Ambient) {
        let store = self.stack.store();
        let settings = SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX);
        let auth =
            MatchmakerAuth::new(Arc::new(settings), Arc::clone(self.stack.stack.keys()), ambient.clone());
        let request = request(&[("authorization", &format!("Bearer {}", game.server))], &json!({}));
        let caller = auth.caller(&request, TokenKind::Server).expect("a server's token");
        let (right, _settings) = auth.game_server(caller).await.expect("a server's right");
        let servers = GameServers::new(store.clone(), ambient.clone());
        let mut cursor = None;
        loop {
            let server_id = "fra".parse().expect("an identifier");
            let page = servers.heartbeat(&right, (server_id, None), cursor.as_ref()).await.expect("kept");
            cursor = page.next;
            if cursor.is_none() {
                return;
            }
        }
    }

    /// What the lobby server does once the player is there.
    async fn connect(&self, host: &LobbyHost, found: &FindLobbyResponse) {
        let token = &found.player.token;
        let claims = self.keys.verify_at_any_age(token).expect("a token");
        if let Claims::Player(seat) = claims {
            host.connect(&seat, token).await.expect("connected");
        }
    }
}

/// Reads settings and servers once, so that what follows is warm: one find, in a lobby that is then filled
/// and forgotten.
async fn warm(instance: &Instance, token: &str) -> String {
    let mut lobby = String::new();
    for _ in 0..10 {
        lobby = find(instance, token).await.1.lobby.lobby_id.to_string();
    }
    lobby
}

/// One find; the time from the parsed event to the answer, and the answer.
async fn find(instance: &Instance, token: &str) -> (Duration, FindLobbyResponse) {
    let request =
        request(&[("authorization", &format!("Bearer {token}"))], &json!({ "game_modes": ["arena"] }));
    let began = Instant::now();
    let answer = instance.call(&request).await.expect("a find");
    (began.elapsed(), answer)
}

/// A conditional write on a lobby of the same table and size, and nothing else.
async fn raw_update(store: &Store, lobby_id: &str) -> Duration {
    let began = Instant::now();
    let _written = store
        .client()
        .update_item()
        .table_name(&store.tables().lobbies)
        .key("lobby_id", AttributeValue::S(lobby_id.to_owned()))
        .update_expression("SET taken = taken + :one")
        .condition_expression("taken < :max AND closed = :open AND lease_until > :now")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .expression_attribute_values(":max", AttributeValue::N("1000000".to_owned()))
        .expression_attribute_values(":now", AttributeValue::N("1".to_owned()))
        .expression_attribute_values(":open", AttributeValue::Bool(false))
        .return_values(ReturnValue::AllNew)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await
        .expect("a write");
    began.elapsed()
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn line(what: &str, measured: String, bar: &str) {
    println!("| {what} | {measured} | {bar} |");
}

fn per_find(usage: Usage, finds: usize) -> (f64, f64, f64) {
    let finds = finds as f64;
    (usage.calls as f64 / finds, usage.read_units / finds, usage.write_units / finds)
}

/// Finds one at a time, so many `a_second`: calls, units, cost; and times against the raw write, alternating.
async fn paced(bench: &mut Bench, a_second: u32) {
    /// Within one reservation's life: in a real game players connect, here they do not.
    const SECONDS: u32 = 50;
    let count = (SECONDS * a_second) as usize;
    let (_game, token) = bench.game().await;
    let clock = SteppedClock::now();
    let instance = bench.instance(&clock.ambient());
    let _warm = warm(&instance, &token).await;
    let raw_lobby = bench.raw_lobby().await;
    let (mut finds, mut raws) = (Vec::new(), Vec::new());
    let before = instance.usage();
    for _ in 0..count {
        clock.step(Duration::from_secs(1) / a_second);
        finds.push(find(&instance, &token).await.0);
        raws.push(raw_update(instance.store(), &raw_lobby).await);
    }
    let (calls, reads, writes) = per_find(instance.usage() - before, count);
    let cost = Cost { calls, read_units: reads, write_units: writes, sent_bytes: 0.0 };
    let of = |what: &str| format!("{what}, {a_second} a second, one at a time");
    line(&of("calls per find"), format!("{calls:.2}"), "<= 2.1");
    line(&of("read units, write units per find"), format!("{reads:.2}, {writes:.2}"), "-");
    line(
        &of("dollars per million finds"),
        format!(
            "{:.2} (DynamoDB {:.2}, Lambda {:.2}, HTTP API {:.2})",
            cost.total(),
            cost.dynamodb(),
            cost.lambda(),
            cost.http_api()
        ),
        "<= 2.60",
    );
    let ratio = percentile(&mut finds, 50).as_secs_f64() / percentile(&mut raws, 50).as_secs_f64();
    line(
        &of("p50 of a find over p50 of a raw conditional write"),
        format!(
            "{ratio:.2} ({:?} / {:?}; p99 {:?} / {:?})",
            percentile(&mut finds, 50),
            percentile(&mut raws, 50),
            percentile(&mut finds, 99),
            percentile(&mut raws, 99)
        ),
        "<= 2.2",
    );
}

/// Isolated instances at full speed.
async fn under_load(bench: &mut Bench, instances: usize) {
    const FINDS_EACH: usize = 1_000;
    let (game, token) = bench.game().await;
    let ambient = Ambient::system();
    let instances: Vec<_> = (0..instances).map(|_| bench.instance(&ambient)).collect();
    for instance in &instances {
        let _warm = warm(instance, &token).await;
    }
    let raw_lobby = bench.raw_lobby().await;
    let lobbies_before = bench.stack.all_lobbies(game.namespace_id()).await.len();
    let before: Vec<_> = instances.iter().map(|instance| instance.usage()).collect();
    let began = Instant::now();
    let runs = instances.iter().map(|instance| async {
        let mut times = Vec::new();
        for _ in 0..FINDS_EACH {
            times.push(find(instance, &token).await.0);
        }
        times
    });
    let finds: Vec<_> = join_all(runs).await.into_iter().flatten().collect();
    let elapsed = began.elapsed();
    let total = finds.len();
    let mut usage = Usage::default();
    for (instance, before) in instances.iter().zip(before) {
        let used = instance.usage() - before;
        usage.calls += used.calls;
        usage.read_units += used.read_units;
        usage.write_units += used.write_units;
    }
    let (calls, reads, writes) = per_find(usage, total);
    let lobbies = bench.stack.all_lobbies(game.namespace_id()).await.len() - lobbies_before;
    let optimum = total.div_ceil(10);
    let count = instances.len();
    line(&format!("calls per find, {count} instances at full speed"), format!("{calls:.2}"), "<= 1.2");
    line(&format!("read, write units per find, {count} instances"), format!("{reads:.2}, {writes:.2}"), "-");
    line(
        &format!("lobbies made over the optimum, {count} instances"),
        format!("{:.3} ({lobbies} for {total} finds)", lobbies as f64 / optimum as f64),
        "<= 1.05",
    );
    // Again, each find with a raw write after it, so that both run under the same load.
    let runs = instances.iter().map(|instance| async {
        let (mut finds, mut raws) = (Vec::new(), Vec::new());
        for _ in 0..FINDS_EACH {
            finds.push(find(instance, &token).await.0);
            raws.push(raw_update(instance.store(), &raw_lobby).await);
        }
        (finds, raws)
    });
    let (finds, raws): (Vec<_>, Vec<_>) = join_all(runs).await.into_iter().unzip();
    let (mut finds, mut raws) = (finds.concat(), raws.concat());
    let ratio = percentile(&mut finds, 50).as_secs_f64() / percentile(&mut raws, 50).as_secs_f64();
    line(
        &format!("p50 of a find over p50 of a raw conditional write, {count} instances"),
        format!("{ratio:.2} ({:?} / {:?})", percentile(&mut finds, 50), percentile(&mut raws, 50)),
        "<= 1.5",
    );
    line(
        &format!("finds/s in process, {count} instances"),
        format!("{:.0}", total as f64 / elapsed.as_secs_f64()),
        "-",
    );
}

/// A hundred isolated warm instances, one find each, at one instant, into an empty namespace.
async fn burst(bench: &mut Bench) {
    const FINDS: usize = 100;
    let (game, token) = bench.game().await;
    let ambient = Ambient::system();
    let instances: Vec<_> = (0..FINDS).map(|_| bench.instance(&ambient)).collect();
    for instance in &instances {
        instance.warm_up(&token, &game.pool("arena", "fra")).await;
    }
    let before: Vec<_> = instances.iter().map(|instance| instance.usage().calls).collect();
    let body = json!({ "game_modes": ["arena"] });
    let found = join_all(instances.iter().map(|instance| instance.find(&token, &body))).await;
    let calls: Vec<_> =
        instances.iter().zip(before).map(|(instance, before)| instance.usage().calls - before).collect();
    let answered = found.iter().filter(|answer| answer.is_ok()).count();
    let lobbies = bench.stack.all_lobbies(game.namespace_id()).await.len();
    let mut histogram = BTreeMap::new();
    for calls in &calls {
        *histogram.entry(*calls).or_insert(0) += 1;
    }
    line(
        "lobbies of 100 finds at one instant",
        format!("{lobbies} ({answered} answered)"),
        "10 or 11, every find answered",
    );
    line(
        "calls of each of those finds",
        format!("at most {} ({histogram:?} as calls: finds)", calls.iter().max().unwrap_or(&0)),
        "at most 4",
    );
}

/// Clients that find without pause, each by an instance of its own, from an empty namespace.
async fn without_pause(bench: &mut Bench, clients: usize) {
    const FINDS_EACH: usize = 100;
    let (_game, token) = bench.game().await;
    let ambient = Ambient::system();
    let instances: Vec<_> = (0..clients).map(|_| bench.instance(&ambient)).collect();
    let began = Instant::now();
    let runs = instances.iter().map(|instance| {
        let token = &token;
        async move {
            let mut finds = Vec::with_capacity(FINDS_EACH);
            for _ in 0..FINDS_EACH {
                let (found, usage) = metered(find(instance, token)).await;
                finds.push((usage.calls, found.0, began.elapsed()));
            }
            finds
        }
    });
    let finds = join_all(runs).await.concat();
    let calls: u64 = finds.iter().map(|(calls, ..)| calls).sum();
    let dearest = finds.iter().max_by_key(|(calls, ..)| *calls).copied().unwrap_or_default();
    let mut times: Vec<_> = finds.iter().map(|(_, took, _)| *took).collect();
    times.sort_unstable();
    let slowest = times.get(times.len() * 999 / 1_000).copied().unwrap_or_default();
    line(
        &format!("calls of the dearest find, {clients} instances without pause from empty"),
        format!(
            "{} (after {:.0?}; {:.2} on average; p99.9 of the times {:.0?})",
            dearest.0,
            dearest.2,
            calls as f64 / finds.len() as f64,
            slowest
        ),
        "<= 8",
    );
}

/// What becomes of the players whose lobbies are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Players {
    Connect,
    NeverConnect,
}

/// Finds a tenth of a second apart, whose players connect, beside `lobbies` full lobbies of the same pool: a
/// minute after their players connected, or at the moment at which the reservations of those who never came
/// are over.
async fn beside(bench: &mut Bench, lobbies: usize, players: Players) {
    const WARMING: usize = 10;
    let finds = if players == Players::Connect { 200 } else { 100 };
    let (game, token) = bench.game_of(BESIDE_SEATS, BESIDE_RESERVATION).await;
    let clock = SteppedClock::now();
    let host = bench.host(&clock.ambient(), &game);
    fill(bench, &game, &token, &clock, lobbies.min(BESIDE_REAL_MAX), players).await;
    copy_full_lobbies(bench, &game, lobbies).await;
    let instance = bench.instance(&clock.ambient());
    for _ in 0..WARMING {
        bench.connect(&host, &find(&instance, &token).await.1).await;
    }
    if players == Players::Connect {
        clock.step(LAUNCH_OVER);
        bench.send_heartbeat(&game, &clock.ambient()).await;
    } else {
        clock.step(BESIDE_RESERVATION);
    }
    let (before, mut calls_max) = (instance.usage(), 0);
    for _ in 0..finds {
        clock.step(Duration::from_millis(100));
        let calls = instance.usage().calls;
        let (_, found) = find(&instance, &token).await;
        calls_max = calls_max.max(instance.usage().calls - calls);
        bench.connect(&host, &found).await;
    }
    let (calls, reads, writes) = per_find(instance.usage() - before, finds);
    let (whose, bar) = match players {
        Players::Connect => ("whose players connected", "<= 2.1 calls, <= 0.6 read units"),
        Players::NeverConnect => ("whose players never came", "<= 2.5 calls, at most 6"),
    };
    line(
        &format!("calls, read units, write units per find, quiet, beside {lobbies} full lobbies {whose}"),
        format!("{calls:.2}, {reads:.2}, {writes:.2}; at most {calls_max} calls"),
        bar,
    );
}

/// Fills about `lobbies` lobbies by finds of several instances, and has their players connect, if they do.
async fn fill(
    bench: &Bench,
    game: &TestGame,
    token: &str,
    clock: &SteppedClock,
    lobbies: usize,
    players: Players,
) {
    const INSTANCES: usize = 8;
    let ambient = &clock.ambient();
    let finds_each = lobbies * BESIDE_SEATS as usize / INSTANCES;
    let runs = (0..INSTANCES).map(|_| async move {
        let instance = bench.instance(ambient);
        let mut found = Vec::new();
        for _ in 0..finds_each {
            clock.step(Duration::from_millis(1));
            found.push(find(&instance, token).await.1);
        }
        found
    });
    let found = join_all(runs).await;
    if players == Players::Connect {
        clock.step(Duration::from_secs(1));
        join_all(found.iter().map(|found| async move {
            let host = bench.host(ambient, game);
            for found in found {
                bench.connect(&host, found).await;
            }
        }))
        .await;
    }
}

/// Copies full lobbies under other identifiers, until there are `count`.
async fn copy_full_lobbies(bench: &Bench, game: &TestGame, count: usize) {
    const BATCH: usize = 25;
    let mut full = bench.stack.all_lobbies(game.namespace_id()).await;
    full.retain(|lobby| lobby.taken == BESIDE_SEATS);
    let copy = |lobby: &Lobby| Lobby { lobby_id: LobbyId::from(Ambient::system().uuid()), ..lobby.clone() };
    let copies: Vec<Lobby> = full.iter().cycle().take(count.saturating_sub(full.len())).map(copy).collect();
    let store = bench.stack.store();
    for copies in copies.chunks(BATCH) {
        let put = |lobby| {
            let item = serde_dynamo::to_item(lobby).expect("an item");
            let put = PutRequest::builder().set_item(Some(item)).build().expect("a put");
            WriteRequest::builder().put_request(put).build()
        };
        let requests = HashMap::from([(store.tables().lobbies.clone(), copies.iter().map(put).collect())]);
        let write = store.client().batch_write_item().set_request_items(Some(requests));
        let answer = write.send().await.expect("a write");
        assert!(answer.unprocessed_items().is_none_or(HashMap::is_empty), "written");
    }
}

/// The local stack over HTTP: finds per second from empty, and with ten thousand live lobbies.
async fn over_http(bench: &mut Bench) {
    let mut rates = Vec::new();
    let raw_lobby = bench.raw_lobby().await;
    let modes = json!({
        "arena": { "regions": ["fra"], "max_players": 8, "reservation_seconds": 600 },
        "solo": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 },
    });
    let game = bench.stack.make_game("http", modes.clone(), 32_767, 100_000).await;
    for live in [0_usize, 10_000] {
        let have = live_lobbies(bench.stack.store(), game.namespace_id()).await as usize;
        let solos = live.saturating_sub(have);
        run_http(bench, &game, "solo", solos).await;
        let before = bench.stack.all_lobbies(game.namespace_id()).await.len();
        // The median of three, because a shared machine has its moods.
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(run_http(bench, &game, "arena", HTTP_FINDS).await);
        }
        let rate = HTTP_FINDS as f64 / percentile(&mut runs, 50).as_secs_f64();
        line(&format!("finds/s over HTTP, 16 connections, {before} live lobbies"), format!("{rate:.0}"), "-");
        rates.push(rate);
        let mut raws = Vec::new();
        for _ in 0..2_000 {
            raws.push(raw_update(bench.stack.store(), &raw_lobby).await);
        }
        line(
            &format!("p50 of a raw conditional write, {before} live lobbies"),
            format!("{:?}", percentile(&mut raws, 50)),
            "-",
        );
        // What slows with the tables is the emulator's transactions: it shows in a namespace that has nothing
        // yet.
        let empty = bench.stack.make_game(&format!("empty-{before}"), modes.clone(), 32_767, 100_000).await;
        let elapsed = run_http(bench, &empty, "solo", CREATIONS).await;
        line(
            &format!("creations/s in an empty namespace, {before} live lobbies elsewhere"),
            format!("{:.0}", CREATIONS as f64 / elapsed.as_secs_f64()),
            "-",
        );
    }
    if let [empty, full] = rates.as_slice() {
        line("the latter over the former", format!("{:.2}", full / empty), ">= 0.9");
    }
}

async fn run_http(bench: &Bench, game: &TestGame, mode: &str, finds: usize) -> Duration {
    const CONNECTIONS: usize = 16;
    let began = Instant::now();
    let runs = (0..CONNECTIONS).map(|connection| async move {
        for _ in (connection..finds).step_by(CONNECTIONS) {
            let _found = game.find(&bench.stack, json!({ "game_modes": [mode] })).await.expect_ok();
        }
    });
    let _done = join_all(runs).await;
    began.elapsed()
}

#[tokio::main]
async fn main() {
    let selected: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let is_selected = |part: &str| selected.is_empty() || selected.iter().any(|argument| argument == part);
    println!("| measure | measured | bar |\n|---|---|---|");
    if is_selected("--http") {
        over_http(&mut Bench::start().await).await;
    }
    let mut bench = Bench::start().await;
    if is_selected("--alone") {
        for a_second in [1, 10] {
            paced(&mut bench, a_second).await;
        }
        under_load(&mut bench, 1).await;
        under_load(&mut bench, 8).await;
        burst(&mut bench).await;
    }
    if is_selected("--from-empty") {
        for clients in [4, 16, 64] {
            without_pause(&mut bench, clients).await;
        }
    }
    if is_selected("--beside") {
        let mut bench = Bench::start().await;
        beside(&mut bench, 2_000, Players::Connect).await;
        beside(&mut bench, 2_000, Players::NeverConnect).await;
        beside(&mut bench, 10_000, Players::Connect).await;
    }
}

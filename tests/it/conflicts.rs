//! DynamoDB's responses to conflicting writes, which the emulator never gives.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: what cannot go on panics"
)]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{
    TestGame, TestStack, all_servers,
    instance::{self, Instance, patient_client},
    scripted::scripted_database,
};
use http::StatusCode;
use muster_local::emulator::{
    in_process::WireAnswer,
    link::{Call, Carried, Link, patient_client_over},
};
use serde_json::{Value, json};
use shared::{
    auth::{
        matchmaker::{GameServerRight, MatchmakerAuth},
        settings::{SETTINGS_AGE_MAX, Settings, SettingsCache},
    },
    base::ambient::{Ambient, Timestamp},
    hosting::game_server::GameServers,
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId, SeatId, WriteId},
        lifecycle::{Connect, Illegal, Transition},
        lobby::{EndCause, Lobby, Stage},
        pool::Tags,
        server::Server,
        tag_digests::TagDigests,
        token::TokenKind,
    },
    rules::registration::Registration,
    store::{
        allotment::AllotmentOutcome,
        client::{Store, TableNames},
        creation::{Burst, Creation, CreationOutcome, HeadKey, Renewal},
        ending::EndOutcome,
        meter::Meter,
        transitions::TransitionOutcome,
    },
};

/// What [`Error::Contention`] answers.
const CONTENDED: (StatusCode, &str) = (StatusCode::SERVICE_UNAVAILABLE, "MATCHMAKER_CONTENTION");

/// A burst whose first position alone is drawn.
fn begun(first: LobbyId, secret: BurstSecret) -> Burst {
    Burst { first, secret, opened_at: Timestamp(1), positions: 1, draws: None, is_announced: false }
}

#[tokio::test]
async fn a_write_that_conflicts_with_a_transaction_is_retried() {
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let first = "00000000-0000-0000-0000-000000000001";
    let drawn = json!({ "Attributes": {
        "pk": { "S": "head/0" }, "first": { "S": first }, "secret": { "S": "s" }, "opened_at": { "N": "1" }, "positions": { "N": "2" },
    }});
    let endpoint = scripted_database(vec![(400, conflict.clone()), (400, conflict), (200, drawn)]).await;
    let store =
        Store::new(patient_client(&endpoint), TableNames { ledger: "t".to_owned(), ..TableNames::default() });
    let key = HeadKey::new(&"n/v/m/r".parse().unwrap(), &TagDigests::default(), 2);
    let secret = serde_json::from_value(json!("s")).unwrap();
    let burst = begun(first.parse().unwrap(), secret);
    let outcome = store.draw_positions(&key, &burst, 1, Duration::ZERO).await.unwrap();
    assert_eq!(outcome, Ok(Burst { positions: 2, ..burst }));
}

#[tokio::test]
async fn a_namespace_that_a_replica_does_not_show_yet_is_read_consistently() {
    let scene = Scene::set("new").await;
    let (game_id, namespace_id) = (scene.game.game_id(), scene.game.namespace_id());
    let (game, namespace) =
        scene.stack.store().game_and_namespace(game_id, namespace_id).await.unwrap().expect("both");
    let mut items = [
        item(serde_dynamo::to_item(&game).expect("a game")),
        item(serde_dynamo::to_item(&namespace).expect("a namespace")),
    ];
    items[0]["sk"] = json!({ "S": "GAME" });
    let table = &scene.stack.store().tables().catalog;
    let response = |items: &[Value]| (200, json!({ "Responses": { table: items }, "UnprocessedKeys": {} }));
    let (store, meter) = scene.scripted(vec![response(&items[..1]), response(&items)]).await;
    let found = store.game_and_namespace(game_id, namespace_id).await.unwrap();
    assert_eq!((found.is_some(), meter.usage().calls), (true, 2));
    let (store, meter) = scene.scripted(vec![response(&items[..1])]).await;
    assert_eq!(store.game_and_namespace(game_id, namespace_id).await.unwrap(), None);
    assert_eq!(meter.usage().calls, 2);
}

#[tokio::test]
async fn unprocessed_keys_of_a_batch_are_retried_a_few_times() {
    let left = json!({
        "Responses": {},
        "UnprocessedKeys": { "t": { "Keys": [{ "lobby_id": { "S": LobbyId::nil() } }] } },
    });
    let none = json!({ "Responses": { "t": [] }, "UnprocessedKeys": {} });
    let read = |answers: Vec<&Value>| {
        let answers = answers.into_iter().map(|answer| (200, answer.clone())).collect();
        async move {
            let tables = TableNames { lobbies: "t".to_owned(), ..TableNames::default() };
            let (client, meter) = (patient_client(&scripted_database(answers).await), Meter::on());
            let store = Store::new(client, tables).metered(meter.clone());
            (store.lobbies(&[LobbyId::nil()]).await, meter.usage().calls)
        }
    };
    let (lobbies, calls) = read(vec![&left, &left, &left, &none]).await;
    assert_eq!((lobbies.unwrap(), calls), (Vec::new(), 4));
    let (refused, calls) = read(vec![&left]).await;
    assert_eq!((refused.unwrap_err().status_and_code().1, calls), ("API_UNAVAILABLE", 4));
}

#[tokio::test]
async fn a_registration_that_conflicts_with_a_transaction_is_retried() {
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let stack = TestStack::start().await;
    let game = stack.make_game("registered", json!({ "arena": { "regions": ["fra"] } }), 1, 1).await;
    let server = all_servers(stack.store(), game.namespace_id()).await.remove(0);
    let item = json!({
        "server": { "S": server.server }, "region_id": { "S": server.region_id }, "free_from": { "N": "1" },
        "ranked_at": { "N": "1" }, "capacity": { "N": "1" }, "used": { "N": "0" }, "lease_until": { "N": "1" },
        "auto_ready": { "BOOL": true }, "ports": { "M": {} }, "registration": { "S": "w" },
    });
    let endpoint = scripted_database(vec![(400, conflict), (200, json!({ "Attributes": item }))]).await;
    let tables = TableNames { servers: "t".to_owned(), ..TableNames::default() };
    let store = Store::new(patient_client(&endpoint), tables);
    assert!(store.replace_server(&server, &server).await.unwrap());
}

#[tokio::test]
async fn a_database_that_only_conflicts_is_unavailable_not_broken() {
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let endpoint = scripted_database(vec![(400, conflict)]).await;
    let store =
        Store::new(patient_client(&endpoint), TableNames { ledger: "t".to_owned(), ..TableNames::default() });
    let key = HeadKey::new(&"n/v/m/r".parse().unwrap(), &TagDigests::default(), 2);
    let secret = BurstSecret::random(&Ambient::system());
    let burst = begun(LobbyId::nil(), secret);
    let error = store.draw_positions(&key, &burst, 1, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.status_and_code().1, "API_UNAVAILABLE");
}

#[tokio::test]
async fn a_creation_that_succeeded_unheard_is_answered_as_it_is_there() {
    let stack = TestStack::start().await;
    let game = stack.make_game("unheard", json!({ "arena": { "regions": ["fra"] } }), 9, 0).await;
    for server in ["first", "second"] {
        game.add_server(&stack, server, "fra", 1, Timestamp::NEVER).await;
    }
    let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let lobby = game.lobby(&stack, &found.lobby_id()).await;
    let mut servers = all_servers(stack.store(), game.namespace_id()).await;
    servers.retain(|server| Some(&server.server) != lobby.server.as_ref());
    let other = servers.remove(0);
    let again = Lobby { server: Some(other.server.clone()), ports: other.ports.clone(), ..lobby.clone() };
    let creation = Creation {
        lobby: again,
        server: other,
        lobby_count_max: 9,
        block: Some(1),
        requests: None,
        renewal: None,
        tags: Tags::new(),
        config: None,
    };
    let outcome = stack.store().create_lobby(&creation, stack.clock.now()).await.unwrap();
    assert_eq!(outcome, CreationOutcome::CreatedBefore(Box::new(lobby)));
}

/// A refused transaction, its parts refused by `codes`.
fn cancelled<const PARTS: usize>(codes: [&str; PARTS]) -> (u16, Value) {
    cancelled_for(&codes.map(|code| (code, None)))
}

/// A refused transaction, its parts refused by a code and, where given, the item that was there.
fn cancelled_for(reasons: &[(&str, Option<&Value>)]) -> (u16, Value) {
    let reason = |(code, item): &(&str, Option<&Value>)| {
        let mut reason = json!({ "Code": code, "Message": "as scripted" });
        if let Some(item) = item {
            reason["Item"] = (*item).clone();
        }
        reason
    };
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "message": "Transaction cancelled",
        "CancellationReasons": reasons.iter().map(reason).collect::<Vec<_>>(),
    });
    (400, body)
}

#[tokio::test]
async fn a_refused_creation_is_read_in_the_order_of_the_rules() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("refused", modes, 9, 9).await;
    let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let lobby = stack.store().lobby(&found.lobby_id().parse().unwrap()).await.unwrap().unwrap();
    let server = stack.store().servers(&lobby.pool.placement(None), None).await.unwrap().0.remove(0);
    let key = HeadKey::new(&lobby.pool, &TagDigests::default(), 2);
    let renewal = Some(Renewal { key, first: lobby.lobby_id.clone() });
    let (block, tags) = (Some(1), Tags::new());
    let creation =
        Creation { lobby, server, lobby_count_max: 9, block, requests: None, renewal, tags, config: None };
    let (none, failed, conflict) = ("None", "ConditionalCheckFailed", "TransactionConflict");
    let conflict_at = |is_at_server| CreationOutcome::Conflict { is_at_server };
    // The parts are lobby, server, head and allotment.
    let cases = [
        ([none, none, conflict, none], conflict_at(false)),
        ([none, conflict, none, none], conflict_at(true)),
        ([none, "ThrottlingError", conflict, conflict], conflict_at(true)),
        (["ProvisionedThroughputExceeded", none, none, none], conflict_at(false)),
        ([conflict, none, none, none], conflict_at(false)),
        ([none, none, none, failed], CreationOutcome::AtCap),
        ([none, failed, none, failed], CreationOutcome::AtCap),
        ([none, failed, none, conflict], CreationOutcome::NoPlace(None)),
    ];
    for (codes, expected) in cases {
        let endpoint = scripted_database(vec![cancelled(codes)]).await;
        let store = Store::new(patient_client(&endpoint), stack.store().tables().clone());
        let outcome = store.create_lobby(&creation, stack.clock.now()).await.unwrap();
        assert_eq!(outcome, expected, "{codes:?}");
    }
}

/// A write that its condition refused, and the lobby that was there, if any.
fn refused_by(lobby: Option<&Lobby>) -> (u16, Value) {
    let mut body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
    });
    if let Some(lobby) = lobby {
        body["Item"] = lobby_item(lobby);
    }
    (400, body)
}

/// A write that succeeded, and the lobby after it.
fn made(lobby: &Lobby) -> (u16, Value) {
    (200, json!({ "Attributes": lobby_item(lobby) }))
}

fn lobby_item(lobby: &Lobby) -> Value {
    item(serde_dynamo::to_item(lobby).expect("a lobby"))
}

fn server_item(server: &Server) -> Value {
    item(serde_dynamo::to_item(server).expect("a server"))
}

fn item(attributes: HashMap<String, AttributeValue>) -> Value {
    attributes.into_iter().map(|(name, value)| (name, attribute(value))).collect()
}

/// A value as DynamoDB writes it.
fn attribute(value: AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::L(list) => json!({ "L": list.into_iter().map(attribute).collect::<Vec<_>>() }),
        AttributeValue::M(map) => json!({ "M": item(map) }),
        other => unreachable!("no lobby and no server holds {other:?}"),
    }
}

/// A lobby with one seat of two reserved, on a stack of its own.
struct Scene {
    stack: TestStack,
    game: TestGame,
    lobby: Lobby,
}

impl Scene {
    async fn set(name: &str) -> Self {
        let stack = TestStack::start().await;
        let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
        let game = stack.make_game(name, modes, 9, 9).await;
        let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
        let lobby_id = found.lobby_id().parse().expect("an identifier");
        let lobby = stack.store().lobby(&lobby_id).await.expect("a read").expect("a lobby");
        Self { stack, game, lobby }
    }

    fn now(&self) -> Timestamp {
        self.stack.clock.now()
    }

    fn seat(&self) -> SeatId {
        self.lobby.reserved.keys().next().expect("a reserved seat").clone()
    }

    fn ended(&self) -> Lobby {
        Lobby { stage: Stage::Ended, server: None, joinable_from: None, ..self.lobby.clone() }
    }

    /// A store on a database that gives `answers`, the last one repeatedly, and counts its calls.
    async fn scripted(&self, answers: Vec<(u16, Value)>) -> (Store, Meter) {
        let (endpoint, meter) = (scripted_database(answers).await, Meter::on());
        let store = Store::new(patient_client(&endpoint), self.stack.store().tables().clone());
        (store.metered(meter.clone()), meter)
    }

    /// The stack's clock with pauses that pass at once, and those pauses.
    fn hurried(&self) -> (Ambient, Arc<Mutex<Vec<Duration>>>) {
        let pauses = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&pauses);
        let ambient = self.stack.ambient().with_sleeper(move |span| {
            noted.lock().expect("no panic").push(span);
            ready(())
        });
        (ambient, pauses)
    }

    /// An instance whose next `count` transactions that are such conflict.
    fn instance(&self, is_it: fn(&Call) -> bool, count: u32) -> Instance {
        let link = Arc::clone(self.stack.stack.store_link());
        let link = Conflicting { link, is_it, left: AtomicU32::new(count) };
        Instance::over(patient_client_over(Arc::new(link)), self.stack.stack.keys(), &self.hurried().0)
    }

    async fn right(&self) -> (GameServerRight, Arc<Settings>) {
        let ambient = self.stack.ambient();
        let settings = SettingsCache::new(self.stack.store().clone(), ambient.clone(), SETTINGS_AGE_MAX);
        let auth = MatchmakerAuth::new(Arc::new(settings), Arc::clone(self.stack.stack.keys()), ambient);
        let bearer = format!("Bearer {}", self.game.server);
        let request = instance::request(&[("authorization", &bearer)], &json!({}));
        let caller = auth.caller(&request, TokenKind::Server).expect("a server token");
        auth.game_server(caller).await.expect("the right of a game server")
    }
}

/// A network on which this many more transactions of a kind conflict.
#[derive(Debug)]
struct Conflicting {
    link: Arc<dyn Link>,
    is_it: fn(&Call) -> bool,
    left: AtomicU32,
}

impl Link for Conflicting {
    fn carry(&self, call: Call) -> Carried {
        let is_due = |left: u32| left.checked_sub(1);
        if call.operation == "TransactWriteItems"
            && (self.is_it)(&call)
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok()
        {
            let (status, body) = cancelled(["None", "TransactionConflict"]);
            return Box::pin(ready(Ok(WireAnswer { status, body: body.to_string() })));
        }
        self.link.carry(call)
    }
}

#[tokio::test]
async fn a_server_that_registers_with_its_fleet_is_allotted_its_first_block_all_the_same() {
    let scene = Scene::set("fleet").await;
    let (right, settings) = scene.right().await;
    let port = json!({ "hostname": "game.example", "port": 7_777, "protocol": "udp" });
    let body = json!({ "region_id": "fra", "capacity": 2, "ports": { "default": port } });
    let request = serde_json::from_value(body).expect("a registration");
    let registration = Registration::check(&request, &settings.game, None).expect("a registration");
    for (conflicts, allotted) in [(0, 1), (3, 1), (100, 0)] {
        let link = Arc::clone(scene.stack.stack.store_link());
        let link = Conflicting { link, is_it: |_| true, left: AtomicU32::new(conflicts) };
        let store = Store::new(patient_client_over(Arc::new(link)), scene.stack.store().tables().clone());
        let (ambient, pauses) = scene.hurried();
        let servers = GameServers::new(store, ambient);
        let name = format!("server-{conflicts}").parse().expect("an identifier");
        let server = servers.register(&right, Some(name), &registration, &settings).await.unwrap();
        assert_eq!(server.allotted, allotted, "{conflicts} conflicts");
        let kept = scene.stack.store().server(&server.server).await.unwrap().expect("a server");
        assert_eq!(kept.allotted, allotted);
        let waited: Duration = pauses.lock().unwrap().iter().sum();
        assert!(waited < Duration::from_secs(2), "I3: {waited:?}");
    }
}

#[tokio::test]
async fn a_find_whose_creations_conflict_keeps_its_position() {
    let scene = Scene::set("kept").await;
    // More often than one creation is tried.
    let instance = scene.instance(|_| true, 10);
    let arena = json!({ "game_modes": ["arena"] });
    // It fills the lobby that is there, and the head's last burst is long over.
    scene.game.find(&scene.stack, arena.clone()).await.expect_ok();
    scene.stack.clock.advance(Duration::from_secs(3));
    let found = instance.find(&scene.game.public, &arena).await.unwrap().lobby.lobby_id;
    let key = HeadKey::new(&scene.lobby.pool, &TagDigests::default(), scene.lobby.max_players);
    let burst = scene.stack.store().burst(&key).await.unwrap().expect("a burst");
    assert_eq!((burst.first, burst.positions), (found, 1), "another one would leave its seat to nobody");
}

/// A network on which no write of a head arrives.
#[derive(Debug)]
struct Headless(Arc<dyn Link>);

impl Link for Headless {
    fn carry(&self, call: Call) -> Carried {
        if call.operation == "UpdateItem" && String::from_utf8_lossy(&call.body).contains("\"head/") {
            let throttled = json!({
                "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
                "message": "The level of configured provisioned throughput for the table was exceeded.",
            });
            return Box::pin(ready(Ok(WireAnswer { status: 400, body: throttled.to_string() })));
        }
        self.0.carry(call)
    }
}

#[tokio::test]
async fn a_find_of_a_large_lobby_gets_its_seat_though_the_head_takes_no_writes() {
    let stack = TestStack::start().await;
    for seats in [17, 100, 256] {
        let modes = json!({ "arena": { "regions": ["fra"], "max_players": seats } });
        let game = stack.make_game(&format!("of-{seats}"), modes, 9, 9).await;
        let link = Arc::new(Headless(Arc::clone(stack.stack.store_link())));
        let ambient = stack.ambient().with_sleeper(|_| ready(()));
        let mut lobbies = BTreeSet::new();
        for _ in 0..3 {
            let finder = Instance::over(
                patient_client_over(Arc::<Headless>::clone(&link)),
                stack.stack.keys(),
                &ambient,
            );
            let found = finder.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
            lobbies.insert(found.lobby.lobby_id);
        }
        assert_eq!(lobbies.len(), 1, "the first find creates a lobby by lot, and the others see it");
    }
}

#[tokio::test]
async fn an_ending_that_conflicts_is_retried_after_growing_pauses() {
    let scene = Scene::set("repeated").await;
    let (none, conflict) = ("None", "TransactionConflict");
    let conflicts = [
        cancelled([conflict, none]),
        cancelled([none, conflict]),
        cancelled([conflict, conflict]),
        cancelled([conflict, "ThrottlingError"]),
        // The lobby's part of another ending is on its way, the server's is made.
        cancelled([conflict, "ConditionalCheckFailed"]),
    ];
    for count in 0..=conflicts.len() {
        let answers = conflicts.iter().take(count).cloned().chain([(200, json!({}))]);
        let (store, meter) = scene.scripted(answers.collect()).await;
        let (ambient, pauses) = scene.hurried();
        let outcome = store.end_lobby(&scene.lobby, EndCause::Idle, &ambient).await.unwrap();
        assert_eq!(outcome, EndOutcome::Ended);
        let pauses = pauses.lock().unwrap();
        assert_eq!((meter.usage().calls, pauses.len()), (count as u64 + 1, count));
        // Each between half of its span and all of it, and the spans double.
        assert!(pauses.iter().all(|pause| *pause > Duration::ZERO && *pause < Duration::from_secs(1)));
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]), "{pauses:?}");
    }
}

#[tokio::test]
async fn an_ending_that_conflicts_each_time_gives_up_as_contended() {
    let scene = Scene::set("contended").await;
    let causes =
        [EndCause::Requested, EndCause::ServerDead, EndCause::NeverReady, EndCause::Idle, EndCause::Unused];
    for cause in causes {
        let (store, meter) = scene.scripted(vec![cancelled(["None", "TransactionConflict"])]).await;
        let (ambient, pauses) = scene.hurried();
        let error = store.end_lobby(&scene.lobby, cause, &ambient).await.unwrap_err();
        assert_eq!(error.status_and_code(), CONTENDED, "{cause:?}");
        let calls = meter.usage().calls;
        assert!((2..=16).contains(&calls), "{cause:?}: {calls} transactions");
        let waited: Duration = pauses.lock().unwrap().iter().sum();
        assert!(waited < Duration::from_secs(2), "{cause:?}: {waited:?}");
    }
}

#[tokio::test]
async fn a_find_at_the_cap_is_not_refused_while_conflicts_hold_up_the_end_of_a_lobby() {
    let scene = Scene::set("held-up").await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = scene.stack.make_game("full", modes, 1, 0).await;
    let register = async |name: &str, lease_seconds: u32| {
        let fields = json!({ "capacity": 1, "lease_seconds": lease_seconds });
        game.register(&scene.stack, name, fields).await;
    };
    register("dies", 10).await;
    let dead = game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await.lobby_id();
    scene.stack.clock.advance(Duration::from_secs(60));
    register("lives", 0).await;
    let is_end = |call: &Call| String::from_utf8_lossy(&call.body).contains(":ended");
    // As often as one ending is tried.
    let finder = scene.instance(is_end, 8);
    let found = finder.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    assert_ne!(found.lobby.lobby_id.to_string(), dead);
}

#[tokio::test]
async fn a_refused_ending_is_read_as_its_parts_say() {
    let scene = Scene::set("read").await;
    let (living, ended) = (lobby_item(&scene.lobby), lobby_item(&scene.ended()));
    let (none, failed, conflict) = ("None", "ConditionalCheckFailed", "TransactionConflict");
    let (idle, dead) = (EndCause::Idle, EndCause::ServerDead);
    // The parts are lobby and server.
    let cases = [
        (idle, [(failed, Some(&ended)), (none, None)], EndOutcome::AlreadyEnded),
        (dead, [(failed, Some(&ended)), (none, None)], EndOutcome::AlreadyEnded),
        (EndCause::Requested, [(failed, Some(&ended)), (none, None)], EndOutcome::AlreadyEnded),
        // Its record went a day after its end.
        (idle, [(failed, None), (none, None)], EndOutcome::AlreadyEnded),
        // A seat was taken, or the lease revived.
        (idle, [(failed, Some(&living)), (none, None)], EndOutcome::Outdated),
        (dead, [(failed, Some(&living)), (none, None)], EndOutcome::Outdated),
        // The request that ended it also gave its place back, so the lobby decides.
        (idle, [(failed, Some(&ended)), (failed, None)], EndOutcome::AlreadyEnded),
        (dead, [(failed, Some(&living)), (conflict, None)], EndOutcome::Outdated),
        // The server sent a heartbeat, and its lobbies' leases follow.
        (dead, [(none, None), (failed, None)], EndOutcome::Outdated),
        (dead, [(conflict, None), (failed, None)], EndOutcome::Outdated),
    ];
    for (cause, reasons, expected) in cases {
        let (store, meter) = scene.scripted(vec![cancelled_for(&reasons)]).await;
        let (ambient, _) = scene.hurried();
        let outcome = store.end_lobby(&scene.lobby, cause, &ambient).await.unwrap();
        assert_eq!(outcome, expected, "{cause:?}: {reasons:?}");
        assert_eq!(meter.usage().calls, 1, "a refusal is final");
    }
}

#[tokio::test]
async fn an_ending_that_the_server_does_not_know_of_is_a_bug_not_an_outcome() {
    let scene = Scene::set("unknown").await;
    for cause in [EndCause::Requested, EndCause::Idle, EndCause::NeverReady, EndCause::Unused] {
        let (store, _) = scene.scripted(vec![cancelled(["None", "ConditionalCheckFailed"])]).await;
        let error = store.end_lobby(&scene.lobby, cause, &scene.hurried().0).await.unwrap_err();
        assert!(matches!(error, Error::Bug(_)), "{cause:?}: {error:?}");
    }
}

#[tokio::test]
async fn an_allotment_that_moves_is_read_as_its_parts_say() {
    let scene = Scene::set("moved").await;
    let server = all_servers(scene.stack.store(), scene.game.namespace_id()).await.remove(0);
    let server = Server { allotted: server.used + 4, ..server };
    let (none, failed, conflict) = ("None", "ConditionalCheckFailed", "TransactionConflict");
    // The parts are server and ledger.
    let cases = [
        ([failed, none], AllotmentOutcome::Outdated),
        ([failed, failed], AllotmentOutcome::Outdated),
        ([failed, conflict], AllotmentOutcome::Outdated),
        ([none, conflict], AllotmentOutcome::Conflict),
        ([conflict, none], AllotmentOutcome::Conflict),
        // The server's part of another move is on its way, the ledger's is made.
        ([conflict, failed], AllotmentOutcome::Conflict),
    ];
    for (codes, expected) in cases {
        let (store, _) = scene.scripted(vec![cancelled(codes)]).await;
        assert_eq!(store.take_allotment_back(&server, 9).await.unwrap(), expected, "{codes:?}");
    }
    let (store, _) = scene.scripted(vec![cancelled([none, failed])]).await;
    let error = store.take_allotment_back(&server, 9).await.unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error:?}");
}

#[tokio::test]
async fn an_ended_lobby_is_ended_again_without_a_word_to_the_database() {
    let scene = Scene::set("again").await;
    let (store, meter) = scene.scripted(vec![(500, json!({}))]).await;
    let outcome = store.end_lobby(&scene.ended(), EndCause::Requested, &scene.hurried().0).await.unwrap();
    assert_eq!((outcome, meter.usage().calls), (EndOutcome::AlreadyEnded, 0));
}

#[tokio::test]
async fn a_transition_that_loses_each_race_gives_up_as_contended() {
    let scene = Scene::set("outrun").await;
    let open = scene.lobby.clone();
    let closed = Lobby { closed: true, joinable_from: None, ..open.clone() };
    let starting = Lobby { stage: Stage::Starting, ..open.clone() };
    let connect = Transition::Connect(Connect::first(
        scene.seat(),
        WriteId::random(&scene.stack.ambient()),
        scene.now(),
    ));
    let cases = [
        (Transition::Ready, starting),
        (Transition::Close, open.clone()),
        (Transition::Reopen, closed),
        (Transition::Drain(None), open.clone()),
        (connect, open.clone()),
        (Transition::Leave(scene.seat()), open),
    ];
    for (transition, lobby) in cases {
        let mut answers = vec![refused_by(Some(&lobby))];
        if transition == Transition::Ready {
            answers.insert(0, (200, json!({ "Item": lobby_item(&lobby) })));
        }
        let (store, meter) = scene.scripted(answers).await;
        let error = store.make_transition(&lobby.lobby_id, &transition, scene.now()).await.unwrap_err();
        assert_eq!(error.status_and_code(), CONTENDED, "{transition:?}");
        let calls = meter.usage().calls;
        assert!((2..=64).contains(&calls), "{transition:?}: {calls} calls");
    }
}

#[tokio::test]
async fn a_transition_that_loses_one_race_is_made_by_the_second_write() {
    let scene = Scene::set("second").await;
    let now = scene.now();
    let open = scene.lobby.clone();
    let closed = Lobby { closed: true, joinable_from: None, ..open.clone() };
    let starting = Lobby { stage: Stage::Starting, ..open.clone() };
    // The race that becoming ready loses: a seat more than was read.
    let mut fuller = Lobby { taken: 2, ..starting.clone() };
    fuller.reserved.insert(SeatId::random(&scene.stack.ambient()), now + Duration::from_secs(120));
    let ready = Lobby { stage: Stage::Ready, vacated_at: Some(now), ..fuller.clone() };
    let left = Lobby { taken: 0, reserved: BTreeMap::new(), ..open.clone() };
    let cases = [
        (Transition::Ready, Some(starting), fuller, ready),
        (Transition::Close, None, open.clone(), closed.clone()),
        (Transition::Reopen, None, closed, open.clone()),
        (Transition::Leave(scene.seat()), None, open, left),
    ];
    for (transition, read, refusing, after) in cases {
        let read = read.map(|lobby| (200, json!({ "Item": lobby_item(&lobby) })));
        let reads = u64::from(read.is_some());
        let answers = read.into_iter().chain([refused_by(Some(&refusing)), made(&after)]).collect();
        let (store, meter) = scene.scripted(answers).await;
        let outcome = store.make_transition(&after.lobby_id, &transition, now).await.unwrap();
        assert_eq!(outcome, TransitionOutcome::Made(Box::new(after)), "{transition:?}");
        assert_eq!(meter.usage().calls, reads + 2, "{transition:?}");
    }
}

#[tokio::test]
async fn what_a_lost_race_shows_is_the_answer_unless_the_transition_is_still_due() {
    let scene = Scene::set("shown").await;
    let now = scene.now();
    let open = scene.lobby.clone();
    let (seat, own) = (scene.seat(), WriteId::random(&scene.stack.ambient()));
    let closed = Lobby { closed: true, joinable_from: None, ..open.clone() };
    let draining = Lobby { is_draining: true, ..closed.clone() };
    let mut connected = open.clone();
    connected.reserved.clear();
    connected.connected.insert(seat.clone(), now + Duration::from_secs(60));
    let connected_by_it = Lobby { connected_by: Some(own.clone()), ..connected.clone() };
    let ended = scene.ended();
    let done = |lobby: &Lobby| TransitionOutcome::AlreadyMade(Box::new(lobby.clone()));
    let illegal = |why, lobby: &Lobby| TransitionOutcome::Illegal(why, Box::new(lobby.clone()));
    let connect = Transition::Connect(Connect::first(seat.clone(), own, now));
    let cases = [
        (Transition::Close, Some(&closed), done(&closed)),
        (Transition::Close, Some(&ended), illegal(Illegal::Ended, &ended)),
        (Transition::Reopen, Some(&open), done(&open)),
        (Transition::Reopen, Some(&draining), illegal(Illegal::Draining, &draining)),
        (Transition::Drain(None), Some(&draining), done(&draining)),
        (connect.clone(), Some(&connected), illegal(Illegal::AlreadyConnected, &connected)),
        // Its first write succeeded unheard: I7 counts it once.
        (connect, Some(&connected_by_it), done(&connected_by_it)),
        (Transition::Leave(seat), Some(&ended), illegal(Illegal::Ended, &ended)),
        (Transition::Drain(None), None, TransitionOutcome::Missing),
    ];
    for (transition, shown, expected) in cases {
        let (store, meter) = scene.scripted(vec![refused_by(shown)]).await;
        let outcome = store.make_transition(&open.lobby_id, &transition, now).await.unwrap();
        assert_eq!(outcome, expected, "{transition:?}");
        assert_eq!(meter.usage().calls, 1, "{transition:?}");
    }
}

#[tokio::test]
async fn a_heartbeat_keeps_a_lobby_that_it_could_not_end_for_contention() {
    let scene = Scene::set("beating").await;
    let now = scene.now();
    let lease_until = now + Duration::from_secs(30);
    let key = scene.lobby.server.clone().unwrap();
    let server = scene.stack.store().server(&key).await.unwrap().unwrap();
    let server = Server { lease_ms: Some(30_000), lease_until, ..server };
    let playing = Lobby { lease_until, ..scene.lobby.clone() };
    let idle = Lobby {
        lobby_id: scene.stack.ambient().uuid().into(),
        lease_until: now + Duration::from_secs(10),
        taken: 0,
        reserved: BTreeMap::new(),
        created_at: now.before(Duration::from_secs(60)),
        ..scene.lobby.clone()
    };
    assert_eq!((playing.end_cause(now), idle.end_cause(now)), (None, Some(EndCause::Idle)));
    let keys = [&idle, &playing].map(lobby_item);
    let table = &scene.stack.store().tables().lobbies;
    let responses = [
        (200, json!({ "Attributes": server_item(&server) })),
        (200, json!({ "Items": keys, "Count": 2, "ScannedCount": 2 })),
        (200, json!({ "Responses": { table: keys } })),
    ];
    let contended = cancelled(["TransactionConflict", "None", "TransactionConflict"]);

    // As often as an ending is tried; then the idle lobby's lease is extended like any other.
    let (probe, probed) = scene.scripted(vec![contended.clone()]).await;
    let error = probe.end_lobby(&idle, EndCause::Idle, &scene.hurried().0).await.unwrap_err();
    assert_eq!(error.status_and_code(), CONTENDED);
    let tries = usize::try_from(probed.usage().calls).unwrap();
    let revived = Lobby { lease_until, ..idle.clone() };
    let answers = responses.into_iter().chain(vec![contended; tries]).chain([made(&revived)]);
    let (store, meter) = scene.scripted(answers.collect()).await;
    let (ambient, pauses) = scene.hurried();
    let servers = GameServers::new(store, ambient);
    let heartbeat = servers.heartbeat(&scene.right().await.0, (key.server_id, None), None).await.unwrap();
    let listed: Vec<_> = heartbeat.lobbies.into_iter().map(|lobby| lobby.lobby_id).collect();
    assert_eq!(listed, [idle.lobby_id, playing.lobby_id]);
    assert_eq!(heartbeat.server, server);
    assert_eq!(meter.usage().calls, probed.usage().calls + 4, "server, query, lobbies, the lease");
    assert!(!pauses.lock().unwrap().is_empty());
}

//! Game servers on demand: what finds request, and what becomes of it (decision 76). The starter here has
//! processes that are tasks of the test; they register through the gateway with the token that they get.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::{FutureExt as _, future::join_all};
use harness::{Answer, TestGame, TestStack, interference::Before, new_game};
use http::{Method, Request};
use muster_local::emulator::link::{Call, Carried, Link};
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    cloud::provision::NewGame,
    hosting::launching::{Launching, Next, NotStarted, Order, Starter},
    models::{
        game::StarterKind,
        ids::{BurstSecret, LobbyId, ServerId, ServerKey},
        launch::LaunchStage,
        lobby::{EndCause, Stage},
        server::Server,
    },
    store::{
        listing::servers_of,
        nursery::{Draw, Drawing, NurseryServer},
    },
};

use crate::screening::run_version;

/// A starter whose processes are noted, and do nothing by themselves.
#[derive(Debug, Default)]
struct Noted {
    /// Each order to start, in order.
    started: Mutex<Vec<Order>>,
    ended: Mutex<Vec<Order>>,
    /// What it answers instead of starting.
    refusal: Mutex<Option<NotStarted>>,
}

impl Starter for Noted {
    async fn start(&self, order: &Order) -> Result<String, NotStarted> {
        if let Some(refusal) = self.refusal.lock().unwrap().clone() {
            return Err(refusal);
        }
        self.started.lock().unwrap().push(order.clone());
        Ok(format!("task-{}", order.start_id.as_str()))
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        self.ended.lock().unwrap().push(order.clone());
        Ok(())
    }
}

/// A game whose servers are started.
struct Scene {
    stack: TestStack,
    game: TestGame,
    launching: Launching<Noted>,
}

impl Scene {
    async fn new(modes: Value, servers: Value) -> Self {
        Self::with_cap(modes, servers, 200).await
    }

    async fn with_cap(modes: Value, servers: Value, lobby_count_max: u32) -> Self {
        Self::of(new_game("births", modes, lobby_count_max), servers).await
    }

    async fn of(mut new: NewGame, servers: Value) -> Self {
        let stack = TestStack::start().await;
        new.config.servers = Some(serde_json::from_value(servers).unwrap());
        new.regions.values_mut().for_each(|region| region.starter = Some(StarterKind::Process));
        let game = stack.make_game_of(new, 0).await;
        let keys = Arc::clone(stack.stack.keys());
        let url = stack.demo().base_url.clone();
        let launching = Launching::new(stack.store().clone(), keys, stack.ambient(), url, Noted::default());
        Self { stack, game, launching }
    }

    fn starter(&self) -> &Noted {
        self.launching.starter()
    }

    fn arena(max_players: u32) -> Value {
        let actions = json!({ "create": { "enabled": true } });
        json!({ "arena": { "regions": ["fra"], "max_players": max_players, "actions": actions } })
    }

    async fn servers(&self) -> Vec<Server> {
        servers_of(self.stack.store(), &self.game.created.game, self.game.namespace_id()).await.unwrap()
    }

    /// The only server.
    async fn server(&self) -> Server {
        let mut servers = self.servers().await;
        assert_eq!(servers.len(), 1, "{servers:?}");
        servers.remove(0)
    }

    async fn server_as_it_is(&self, key: &ServerKey) -> Server {
        self.stack.store().server(key).await.unwrap().unwrap()
    }

    async fn look(&self, server: &Server) -> Next {
        self.launching.look(&server.server, 0).await.unwrap()
    }

    /// Waits until a find has requested a server.
    async fn requested(&self) -> Server {
        loop {
            if let Some(server) = self.servers().await.into_iter().find(Server::is_requested) {
                return server;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The server that a find has requested, which goes on waiting for it.
    async fn requested_by(&self, find: &mut (impl Future<Output = Answer> + Unpin)) -> Server {
        tokio::select! {
            biased;
            server = self.requested() => server,
            answer = find => panic!("{}", answer.body),
        }
    }

    /// Until so many lobbies have places, of which `find` makes the last.
    async fn placed_by(&self, find: &mut (impl Future<Output = Answer> + Unpin), count: u32) {
        let placed = async {
            while self.servers().await.iter().map(|server| server.used).sum::<u32>() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = placed => {}
            answer = find => panic!("{}", answer.body),
        }
    }

    async fn serve(&self, order: &Order, operation: &str, more: Value) -> Answer {
        let mut body = json!({ "server_id": order.environment["MUSTER_SERVER_ID"],
                               "start_id": order.environment["MUSTER_START_ID"] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (path, token) =
            (format!("/matchmaker/servers/{operation}"), &order.environment["MUSTER_SERVER_TOKEN"]);
        self.stack.call(Method::POST, &path, Some(token), body.to_string()).await
    }

    /// A process registers.
    async fn register(&self, order: &Order) -> Answer {
        let port = json!({ "port": 7_777, "protocol": "udp" });
        let body =
            json!({ "region_id": order.environment["MUSTER_REGION_ID"], "ports": { "default": port } });
        self.serve(order, "register", body).await
    }

    async fn beat(&self, order: &Order) -> Answer {
        self.serve(order, "heartbeat", json!({})).await
    }

    fn order(&self) -> Order {
        self.starter().started.lock().unwrap().last().cloned().unwrap()
    }

    /// A find whose server starts and registers while it waits.
    async fn find_and_start(&self) -> Answer {
        let find = self.game.find(&self.stack, json!({ "game_modes": ["arena"] }));
        let starts = async {
            let server = self.requested().await;
            self.look(&server).await;
            self.register(&self.order()).await.expect_ok();
        };
        seated(find, starts).await
    }
}

/// The answer of a request for a seat while something else is done, which it needs.
async fn seated(request: impl Future<Output = Answer>, meanwhile: impl Future<Output = ()>) -> Answer {
    let (mut request, mut meanwhile) = (pin!(request.fuse()), pin!(meanwhile.fuse()));
    tokio::select! {
        () = &mut meanwhile => request.await.expect_ok(),
        answer = &mut request => {
            let answer = answer.expect_ok();
            meanwhile.await;
            answer
        }
    }
}

#[tokio::test]
async fn a_find_waits_for_the_server_that_it_requested() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": { "image": "game:7" }, "capacity": 4 })).await;
    let seat = scene.find_and_start().await;
    assert_eq!(seat.body["ports"]["default"]["hostname"], "127.0.0.1", "the caller's address");
    assert_eq!(seat.body["ports"]["default"]["port"], 7_777);
    let server = scene.server().await;
    assert_eq!((server.stage, server.used, server.capacity), (Some(LaunchStage::Running), 1, 4));
    let order = scene.order();
    assert_eq!(order.build, json!({ "image": "game:7" }));
    assert_eq!(order.environment["MUSTER_BUILD"], r#"{"image":"game:7"}"#);
    assert_eq!(order.environment["MUSTER_CAPACITY"], "4");
    let beat = scene.beat(&order).await.expect_ok();
    assert_eq!(beat.body["lobbies"][0]["lobby_id"], seat.lobby_id());
    scene.game.connect(&scene.stack, &seat).await.expect_ok();

    // From now on it is a game server like any other.
    for _ in 0..9 {
        let seat = scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
        assert_eq!(seat.lobby_id(), beat.body["lobbies"][0]["lobby_id"]);
    }
    let next = scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert_ne!(next.lobby_id(), seat.lobby_id());
    assert_eq!(scene.server().await.used, 2, "on the same server");
}

#[tokio::test]
async fn a_created_lobby_requests_a_server_as_a_find_does() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7 })).await;
    let create = scene.game.play(&scene.stack, "lobbies/create", json!({ "game_mode": "arena" }));
    let starts = async {
        scene.look(&scene.requested().await).await;
        scene.register(&scene.order()).await.expect_ok();
    };
    let created = seated(create, starts).await;
    assert_eq!(created.body["ports"]["default"]["port"], 7_777);
}

/// I15: two modes and three sets of tags at one moment.
#[tokio::test]
async fn finds_at_one_moment_request_as_many_servers_as_their_lobbies_need() {
    let mode = |max_players: u32| json!({ "regions": ["fra"], "max_players": max_players, "taggable": true });
    let modes = json!({ "duel": mode(2), "arena": mode(10) });
    let scene = Scene::new(modes, json!({ "build": "7", "capacity": 4 })).await;
    let bodies = (0..120_usize).map(|n| match n % 4 {
        0 => json!({ "game_modes": ["duel"] }),
        1 => json!({ "game_modes": ["arena"], "tags": { "map": "a" } }),
        2 => json!({ "game_modes": ["arena"], "tags": { "map": "b" } }),
        _ => json!({ "game_modes": ["arena"] }),
    });
    let finds = join_all(bodies.map(|body| scene.game.find(&scene.stack, body)));
    let starts = async {
        loop {
            for server in scene.servers().await.into_iter().filter(Server::is_requested) {
                let before = scene.starter().started.lock().unwrap().len();
                scene.look(&server).await;
                if scene.starter().started.lock().unwrap().len() > before {
                    scene.register(&scene.order()).await.expect_ok();
                }
            }
            tokio::task::yield_now().await;
        }
    };
    let answers = tokio::select! {
        answers = finds => answers,
        () = starts => unreachable!("it goes on"),
    };
    let seated: Vec<_> = answers.into_iter().map(Answer::expect_ok).collect();
    let tokens: BTreeSet<String> =
        seated.iter().map(|seat| seat.body["player"]["token"].to_string()).collect();
    assert_eq!(tokens.len(), 120);
    let lobbies: BTreeSet<String> = seated.iter().map(Answer::lobby_id).collect();
    let servers = scene.servers().await;
    let needed = lobbies.len().div_ceil(4);
    assert_eq!(servers.len(), needed, "{} lobbies: {servers:?}", lobbies.len());
    assert_eq!(servers.iter().map(|server| server.used).sum::<u32>() as usize, lobbies.len());
    let starts = scene.starter().started.lock().unwrap();
    let each: BTreeMap<_, _> = starts.iter().map(|order| (order.start_id.as_str(), order)).collect();
    assert_eq!(each.len(), starts.len(), "each once (I16)");
}

/// Decision 76: a hostile address has two servers started at most, then one, until a player connects.
#[tokio::test]
async fn an_address_of_which_nobody_connected_has_few_servers_requested() {
    let mut new = new_game("births", Scene::arena(1), 200);
    new.namespaces[0].max_players_per_client = 8;
    let scene = Scene::of(new, json!({ "build": 7 })).await;
    let first = scene.find_and_start().await;
    scene.find_and_start().await;
    let body = || json!({ "game_modes": ["arena"] });
    let refused = scene.game.find(&scene.stack, body()).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE"));
    assert!(refused.body["message"].as_str().unwrap().contains("connected yet to 2 of its lobbies"));
    let create = scene.game.play(&scene.stack, "lobbies/create", json!({ "game_mode": "arena" })).await;
    assert_eq!(create.refusal(), (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE"));
    assert_eq!(scene.servers().await.len(), 2);
    // It drew no place, and its seats are free: another address is not refused for it.
    let elsewhere = Ipv4Addr::new(127, 0, 2, 1);
    let url = format!("{}/matchmaker/lobbies/find", scene.stack.demo().base_url);
    let request = Request::post(url).header("authorization", format!("Bearer {}", scene.game.public));
    let find = scene.stack.send_from(elsewhere, request.body(body().to_string().into()).unwrap());
    let starts = async {
        scene.look(&scene.requested().await).await;
        scene.register(&scene.order()).await.expect_ok();
    };
    seated(find, starts).await;
    assert_eq!(scene.servers().await.len(), 3);
    // A player of the first address connects: the next ones have servers as they need them.
    scene.game.connect(&scene.stack, &first).await.expect_ok();
    scene.find_and_start().await;
    assert_eq!(scene.servers().await.len(), 4);
}

/// A class at a school, which would have a server requested each.
#[tokio::test]
async fn an_address_of_which_nobody_connected_shares_a_server_just_requested() {
    let mut new = new_game("births", Scene::arena(1), 200);
    new.namespaces[0].max_players_per_client = 8;
    let scene = Scene::of(new, json!({ "build": 7, "capacity": 4 })).await;
    let mut finds = Vec::new();
    for count in 1..=4 {
        let mut find = Box::pin(scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })));
        scene.placed_by(&mut find, count).await;
        finds.push(find);
    }
    assert_eq!(scene.server().await.used, 4);
}

#[tokio::test]
async fn a_slow_start_is_left_to_the_repetition() {
    let servers = json!({ "build": 7, "start_seconds": 60 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let (game, stack) = (&scene.game, &scene.stack);
    let pool = game.pool("arena", "fra");
    let build_id = game.created.version.config.servers.as_ref().unwrap().build_id();
    let (placement, now) = (pool.placement(Some(build_id)), stack.clock.now());
    stack.store().note_start(&placement, Duration::from_secs(30), now).await.unwrap();

    let body = json!({ "game_modes": ["arena"] });
    let refused = game.play_keyed(stack, "lobbies/find", "a-key", body.clone()).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
    assert_eq!(refused.headers["retry-after"], "10", "at most");
    let metadata = refused.body["metadata"].clone();
    assert_eq!((&metadata["stage"], &metadata["start_seconds"]), (&json!("requested"), &json!(60)));
    let lobby_id = metadata["lobby_id"].as_str().unwrap().to_owned();
    assert_eq!(game.lobby(stack, &lobby_id).await.taken, 1, "kept for the repetition");

    // Without a key the seat is given back, and the next find meets the same lobby.
    let unkeyed = game.find(stack, body.clone()).await;
    assert_eq!(unkeyed.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
    assert_eq!(unkeyed.body["metadata"]["lobby_id"], lobby_id);
    assert_eq!(game.lobby(stack, &lobby_id).await.taken, 1);

    let server = scene.server().await;
    scene.look(&server).await;
    scene.register(&scene.order()).await.expect_ok();
    let seat = game.play_keyed(stack, "lobbies/find", "a-key", body.clone()).await.expect_ok();
    assert_eq!(seat.lobby_id(), lobby_id);
    assert_eq!(game.lobby(stack, &lobby_id).await.taken, 1, "the same seat");
    assert_eq!(game.find(stack, body).await.expect_ok().lobby_id(), lobby_id);
    assert_eq!(scene.servers().await.len(), 1);
}

#[tokio::test]
async fn a_late_start_is_expected_to_take_as_long_again_by_those_without_a_seat() {
    let servers = json!({ "build": 7, "start_seconds": 60 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let (game, stack, body) = (&scene.game, &scene.stack, json!({ "game_modes": ["arena"] }));
    let timeout = (503, "MATCHMAKER_LOBBY_START_TIMEOUT");
    let mut unkeyed = pin!(game.find(stack, body.clone()));
    scene.requested_by(&mut unkeyed).await;
    stack.clock.advance(Duration::from_secs(25));
    let unkeyed = unkeyed.await;
    assert_eq!((unkeyed.refusal(), &unkeyed.headers["retry-after"]), (timeout, &"10".parse().unwrap()));

    // A kept seat is waited for closely.
    let lobby_id = unkeyed.body["metadata"]["lobby_id"].as_str().unwrap();
    let mut keyed = pin!(game.play_keyed(stack, "lobbies/find", "a-key", body));
    let is_seated = async {
        while game.lobby(stack, lobby_id).await.taken == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = is_seated => {}
        answer = &mut keyed => panic!("{}", answer.body),
    }
    stack.clock.advance(Duration::from_secs(25));
    let keyed = keyed.await;
    assert_eq!((keyed.refusal(), &keyed.headers["retry-after"]), (timeout, &"1".parse().unwrap()));
}

#[tokio::test]
async fn a_lobby_on_a_server_requested_before_expects_it_when_its_request_did() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "capacity": 4, "start_seconds": 60 })).await;
    let (game, stack) = (&scene.game, &scene.stack);
    let build_id = game.created.version.config.servers.as_ref().unwrap().build_id();
    let placement = game.pool("arena", "fra").placement(Some(build_id));
    stack.store().note_start(&placement, Duration::from_secs(30), stack.clock.now()).await.unwrap();
    let create = async || {
        let created = game.play(stack, "lobbies/create", json!({ "game_mode": "arena" })).await;
        assert_eq!(created.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
        created.body["metadata"].clone()
    };
    let requested = create().await;
    stack.clock.advance(Duration::from_secs(4));
    let placed = create().await;
    assert_ne!(placed["lobby_id"], requested["lobby_id"]);
    assert_eq!(scene.servers().await.len(), 1);
    assert_eq!(placed["expected_at"], requested["expected_at"]);
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_with_the_reason_and_blocks_after_three() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "server_count_max": 1 })).await;
    *scene.starter().refusal.lock().unwrap() = Some(NotStarted::Refused("no such image".to_owned()));
    let body = json!({ "game_modes": ["arena"] });
    for _ in 0..3 {
        let find = scene.game.find(&scene.stack, body.clone());
        let fails = async {
            let server = scene.requested().await;
            assert_eq!(scene.look(&server).await, Next::Nothing);
            scene.server_as_it_is(&server.server).await
        };
        let (refused, failed) = tokio::join!(find, fails);
        assert_eq!(refused.refusal(), (503, "MATCHMAKER_SERVER_START_FAILED"));
        assert_eq!(refused.body["metadata"], json!({ "reason": "no such image" }));
        assert_eq!((failed.stage, failed.used), (Some(LaunchStage::Failed), 0), "its lobby ended");
        assert_eq!(failed.placement_pool, None, "and counts no more");
        // The burst of the lobby that ended is over.
        scene.stack.clock.advance(Duration::from_secs(3));
    }
    let blocked = scene.game.find(&scene.stack, body.clone()).await;
    assert_eq!(blocked.refusal(), (503, "MATCHMAKER_SERVER_START_FAILED"));
    assert_eq!(blocked.body["metadata"], json!({ "reason": "no such image" }));
    let wait: u64 = blocked.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((40..=60).contains(&wait), "{wait}");

    scene.stack.clock.advance(Duration::from_secs(61));
    *scene.starter().refusal.lock().unwrap() = None;
    scene.find_and_start().await;
}

#[tokio::test]
async fn a_process_that_never_registers_fails_at_its_deadline_without_any_request() {
    let servers = json!({ "build": 7, "start_seconds": 20, "server_count_max": 1 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let mut find = pin!(scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })));
    let server = scene.requested_by(&mut find).await;
    let Next::Look { after, tries: 0 } = scene.look(&server).await else { panic!("a deadline") };
    assert!(after <= Duration::from_secs(20) && after > Duration::from_secs(15), "{after:?}");
    scene.stack.clock.advance(after);
    assert_eq!(scene.look(&server).await, Next::Nothing);
    let order = scene.order();
    assert_eq!(
        scene.starter().ended.lock().unwrap().last().unwrap().handle,
        Some(format!("task-{}", order.start_id.as_str()))
    );
    let refused = find.await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_SERVER_START_FAILED"));
    let reason = refused.body["metadata"]["reason"].as_str().unwrap();
    assert_eq!(reason, "it did not register within 20 seconds");
    // Late, and given up.
    assert_eq!(scene.register(&order).await.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));
    assert_eq!(scene.beat(&order).await.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));
    // Its place counts no more.
    scene.stack.clock.advance(Duration::from_secs(3));
    scene.find_and_start().await;
}

#[tokio::test]
async fn a_server_without_lobbies_ends_after_its_idle_time_and_counts_no_more() {
    let servers = json!({ "build": 7, "idle_seconds": 30, "server_count_max": 1 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let seat = scene.find_and_start().await;
    let (order, stack) = (scene.order(), &scene.stack);
    scene.game.connect(stack, &seat).await.expect_ok();
    scene.beat(&order).await.expect_ok();
    scene.game.disconnect(stack, &seat).await.expect_ok();
    stack.clock.advance(Duration::from_secs(1));
    let beat = scene.beat(&order).await.expect_ok();
    assert_eq!(beat.body["lobbies"], json!([]), "the empty one ended");
    scene.beat(&order).await.expect_ok();
    stack.clock.advance(Duration::from_secs(20));
    assert_eq!(scene.beat(&order).await.expect_ok().body["stop"], Value::Null);
    stack.clock.advance(Duration::from_secs(11));
    let server = scene.server().await;
    assert_eq!(scene.beat(&order).await.expect_ok().body["stop"], true);
    assert_eq!(scene.beat(&order).await.expect_ok().body["stop"], true, "until it is gone");
    assert_eq!(scene.look(&server).await, Next::Nothing);
    let gone = scene.server_as_it_is(&server.server).await;
    assert_eq!((gone.stage, gone.placement_pool), (Some(LaunchStage::Gone), None));
    assert_eq!(scene.starter().ended.lock().unwrap().len(), 1);
    assert_eq!(scene.look(&server).await, Next::Nothing);
    assert_eq!(scene.starter().ended.lock().unwrap().len(), 1, "once");
    assert_eq!(scene.beat(&order).await.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));
    scene.find_and_start().await;
    assert_ne!(scene.order().start_id, order.start_id);
}

/// I14: lists read each placement pool that the namespace knows of, and a deployment a day makes many.
#[tokio::test]
async fn a_build_is_forgotten_with_its_last_server() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "idle_seconds": 0 })).await;
    let known = async || {
        let namespace_id = scene.game.namespace_id();
        scene.stack.store().placements_with_builds(namespace_id).await.unwrap().len()
    };
    let stops = async || {
        let (server, order) = (scene.server().await, scene.order());
        scene.serve(&order, "deregister", json!({ "end_lobbies": true })).await.expect_ok();
        assert_eq!(scene.look(&server).await, Next::Nothing);
        scene.stack.clock.advance(Duration::from_secs(3));
    };
    scene.find_and_start().await;
    assert_eq!(known().await, 1);
    stops().await;
    assert_eq!(known().await, 0);

    // A server by hand keeps it, also before it is in the index.
    scene.find_and_start().await;
    let body = json!({ "server_id": "by-hand", "region_id": "fra", "build": 7, "lease_seconds": 0,
                       "ports": { "default": { "hostname": "a.example", "port": 1, "protocol": "udp" } } });
    scene.game.serve(&scene.stack, "register", body).await.expect_ok();
    let key = |id: &str| ServerKey {
        namespace_id: scene.game.namespace_id().clone(),
        server_id: id.parse().unwrap(),
    };
    let by_hand = scene.server_as_it_is(&key("by-hand")).await.pool();
    let started = scene.servers().await.into_iter().find(|server| server.launch.is_some()).unwrap();
    scene.serve(&scene.order(), "deregister", json!({ "end_lobbies": true })).await.expect_ok();
    assert_eq!(scene.look(&started).await, Next::Nothing);
    assert_eq!(known().await, 1);
    scene.stack.store().forget_placement(&by_hand, scene.stack.clock.now()).await.unwrap();
    assert_eq!(known().await, 1, "it registered a moment ago");
    scene.stack.clock.advance(Duration::from_secs(3_601));
    scene.stack.store().forget_placement(&by_hand, scene.stack.clock.now()).await.unwrap();
    assert_eq!(known().await, 0);
}

#[tokio::test]
async fn a_server_that_deregisters_counts_no_more_and_a_silent_one_is_retired() {
    let servers = json!({ "build": 7, "server_count_max": 1 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let seat = scene.find_and_start().await;
    scene.serve(&scene.order(), "deregister", json!({ "end_lobbies": true })).await.expect_ok();
    assert_eq!(scene.game.lobby(&scene.stack, &seat.lobby_id()).await.stage, Stage::Ended);
    scene.stack.clock.advance(Duration::from_secs(3));

    let seat = scene.find_and_start().await;
    let server = scene.server().await;
    let Next::Look { after, .. } = scene.look(&server).await else { panic!("a lease") };
    scene.stack.clock.advance(after);
    assert_eq!(scene.look(&server).await, Next::Nothing);
    assert_eq!(scene.server_as_it_is(&server.server).await.stage, Some(LaunchStage::Gone));
    assert_eq!(scene.game.lobby(&scene.stack, &seat.lobby_id()).await.stage, Stage::Ended);
    scene.find_and_start().await;
}

#[tokio::test]
async fn no_more_servers_are_requested_than_may_be() {
    let scene =
        Scene::new(Scene::arena(1), json!({ "build": 7, "capacity": 2, "server_count_max": 2 })).await;
    let body = json!({ "game_modes": ["arena"] });
    for _ in 0..2 {
        scene.find_and_start().await;
        scene.game.find(&scene.stack, body.clone()).await.expect_ok();
        scene.stack.clock.advance(Duration::from_secs(3));
    }
    let refused = scene.game.find(&scene.stack, body).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(refused.body["metadata"]["servers"], json!({ "full": 2 }));
    assert_eq!(scene.servers().await.len(), 2);
}

#[tokio::test]
async fn at_the_cap_of_lobbies_no_server_is_requested_and_a_find_is_refused() {
    let scene = Scene::with_cap(Scene::arena(1), json!({ "build": 7 }), 1).await;
    let seat = scene.find_and_start().await;
    scene.game.connect(&scene.stack, &seat).await.expect_ok();
    scene.stack.clock.advance(Duration::from_secs(3));
    let refused = scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
    assert_eq!(scene.servers().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_changed_since_it_was_read_is_let_go_at_the_next_look() {
    let scene = Scene::new(Scene::arena(1), json!({ "build": 7 })).await;
    let seat = scene.find_and_start().await;
    let (store, now) = (scene.stack.store(), scene.stack.clock.now());
    let lobby = scene.game.lobby(&scene.stack, &seat.lobby_id()).await;
    store.end_lobby(&lobby, EndCause::Requested, &scene.stack.ambient()).await.unwrap();
    let running = scene.server().await;
    let retired = store.retire_launched(&running, now.max(running.lease_until)).await.unwrap().unwrap();
    let outdated = Server { allotted: retired.allotted + 1, ..retired.clone() };
    assert!(!store.let_launched_server_go(&outdated, now).await.unwrap());
    // A slow find took a place before it was retired.
    let set = async |used: u32| {
        let values = [(":used", AttributeValue::N(used.to_string()))];
        scene.stack.alter_server(&retired.server, "SET #used = :used", &values).await;
    };
    set(1).await;
    assert!(!store.let_launched_server_go(&retired, now).await.unwrap());
    set(0).await;
    assert!(store.let_launched_server_go(&retired, now).await.unwrap());
}

#[tokio::test]
async fn what_is_late_neither_retires_a_server_nor_shortens_the_lease_of_its_lobby() {
    let scene = Scene::new(Scene::arena(1), json!({ "build": 7 })).await;
    let seat = scene.find_and_start().await;
    let (store, earlier) = (scene.stack.store(), scene.server().await);
    let lobby = async || scene.game.lobby(&scene.stack, &seat.lobby_id()).await;
    let opened = lobby().await;
    scene.stack.clock.advance(Duration::from_secs(10));
    scene.beat(&scene.order()).await.expect_ok();
    // Both have read the server before that heartbeat.
    assert!(store.retire_launched(&earlier, earlier.lease_until).await.unwrap().is_err());
    assert!(store.put_on_registered(&opened, &earlier).await.unwrap().is_some());
    let server = scene.server().await;
    assert!(server.lease_until > earlier.lease_until);
    assert_eq!((server.stage, lobby().await.lease_until), (earlier.stage, server.lease_until));
}

#[tokio::test]
async fn a_server_whose_allotment_was_taken_back_counts_no_more_once_its_last_lobby_ends() {
    let scene = Scene::new(Scene::arena(1), json!({ "build": 7, "server_count_max": 1 })).await;
    let seat = scene.find_and_start().await;
    scene.game.connect(&scene.stack, &seat).await.expect_ok();
    scene.serve(&scene.order(), "deregister", json!({})).await.expect_ok();
    let server = scene.server().await;
    let zero = [(":zero", AttributeValue::N("0".to_owned()))];
    scene.stack.alter_server(&server.server, "SET #allotted = :zero", &zero).await;
    let lobby = scene.game.lobby(&scene.stack, &seat.lobby_id()).await;
    scene.stack.store().end_lobby(&lobby, EndCause::Requested, &scene.stack.ambient()).await.unwrap();
    let gone = scene.server_as_it_is(&server.server).await;
    assert_eq!((gone.stage, gone.placement_pool), (Some(LaunchStage::Gone), None));
    scene.stack.clock.advance(Duration::from_secs(3));
    scene.find_and_start().await;
}

#[tokio::test]
async fn heartbeats_keep_a_lobby_that_starts_on_a_started_server() {
    let scene = Scene::new(Scene::arena(1), json!({ "build": 7 })).await;
    let mut find = pin!(scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })));
    let server = scene.requested_by(&mut find).await;
    scene.look(&server).await;
    let order = scene.order();
    let port = json!({ "port": 7_777, "protocol": "udp" });
    let body = json!({ "region_id": "fra", "ports": { "default": port }, "auto_ready": false });
    scene.serve(&order, "register", body).await.expect_ok();
    scene.stack.clock.advance(Duration::from_secs(10));
    let beat = scene.beat(&order).await.expect_ok();
    let lobby_id = beat.body["lobbies"][0]["lobby_id"].as_str().unwrap();
    let lobby = scene.game.lobby(&scene.stack, lobby_id).await;
    assert_eq!(lobby.stage, Stage::Starting);
    assert_eq!(lobby.lease_until, scene.server().await.lease_until);
}

#[tokio::test]
async fn a_lobby_never_runs_on_another_build_than_that_of_its_version() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7 })).await;
    let (stack, game) = (&scene.stack, &scene.game);
    // A server without build is none for it.
    game.add_server(stack, "by-hand", "fra", 9, Timestamp::NEVER).await;
    let seat = scene.find_and_start().await;
    let on = game.lobby(stack, &seat.lobby_id()).await.server.unwrap();
    assert_eq!(on.server_id.as_str(), scene.order().environment["MUSTER_SERVER_ID"]);
    // One that was started by hand and names the build is.
    let port = json!({ "hostname": "hand.example", "port": 1, "protocol": "udp" });
    let named = json!({ "server_id": "named", "region_id": "fra", "build": 7, "ports": { "game": port } });
    game.serve(stack, "register", named).await.expect_ok();
    stack.clock.advance(Duration::from_secs(3));
    let create = game.play(stack, "lobbies/create", json!({ "game_mode": "arena" })).await.expect_ok();
    assert_eq!(game.lobby(stack, &create.lobby_id()).await.server.unwrap().server_id.as_str(), "named");
    assert_eq!(scene.servers().await.len(), 3, "lists show all of them");
}

#[tokio::test]
async fn a_token_of_one_server_acts_on_that_server_alone() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7 })).await;
    let seat = scene.find_and_start().await;
    let order = scene.order();
    let token = order.environment["MUSTER_SERVER_TOKEN"].clone();
    let ask = async |operation: &str, body: Value| {
        let path = format!("/matchmaker/servers/{operation}");
        scene.stack.call(Method::POST, &path, Some(&token), body.to_string()).await
    };
    let port = json!({ "hostname": "hand.example", "port": 1, "protocol": "udp" });
    let register = json!({ "server_id": "other", "region_id": "fra", "ports": { "game": port } });
    scene.game.serve(&scene.stack, "register", register.clone()).await.expect_ok();
    let not_found = (400, "MATCHMAKER_SERVER_NOT_FOUND");
    for (operation, body) in [
        ("register", register),
        ("register", json!({ "server_id": "new", "region_id": "fra", "ports": { "game": port } })),
        ("heartbeat", json!({ "server_id": "other" })),
        ("deregister", json!({ "server_id": "other" })),
    ] {
        assert_eq!(ask(operation, body.clone()).await.refusal(), not_found, "{operation} {body}");
    }
    // Another start cannot take its record either.
    let again = json!({ "start_id": "another", "region_id": "fra", "ports": { "default": port } });
    assert_eq!(scene.serve(&order, "register", again).await.refusal(), not_found);
    // Nor can it end a lobby of another one.
    let hand = json!({ "server_id": "named", "region_id": "fra", "build": 7, "ports": { "game": port } });
    scene.game.serve(&scene.stack, "register", hand).await.expect_ok();
    scene.stack.clock.advance(Duration::from_secs(3));
    scene.serve(&order, "heartbeat", json!({})).await.expect_ok();
    let lobby = |seat: &Answer| json!({ "lobby_id": seat.lobby_id() });
    let others = scene.game.play(&scene.stack, "lobbies/create", json!({ "game_mode": "arena" })).await;
    assert_eq!(ask("end-lobby", lobby(&others)).await.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"));
    ask("end-lobby", lobby(&seat)).await.expect_ok();
}

#[tokio::test]
async fn the_order_of_a_start_is_the_same_at_every_try() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": { "b": 1, "a": [2] } })).await;
    *scene.starter().refusal.lock().unwrap() = Some(NotStarted::NotNow("busy".to_owned()));
    let find = scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] }));
    let tries = async {
        let server = scene.requested().await;
        let next = scene.launching.look(&server.server, 0).await.unwrap();
        assert_eq!(next, Next::Look { after: Duration::from_secs(1), tries: 1 });
        let next = scene.launching.look(&server.server, 1).await.unwrap();
        assert_eq!(next, Next::Look { after: Duration::from_secs(2), tries: 2 });
        *scene.starter().refusal.lock().unwrap() = None;
        // As if the note of the first start were lost: two deliveries at once.
        let looks = tokio::join!(scene.look(&server), scene.look(&server));
        assert!(matches!(looks, (Next::Look { .. }, Next::Look { .. })), "{looks:?}");
        let started = scene.starter().started.lock().unwrap().clone();
        assert!(started.iter().all(|order| *order == started[0]), "{started:?}");
        scene.register(&started[0]).await.expect_ok();
    };
    seated(find, tries).await;
}

/// A version without the block asks and writes what it did before.
#[tokio::test]
async fn a_version_without_servers_requests_none() {
    let stack = TestStack::start().await;
    let game = stack.make_game("by-hand", Scene::arena(10), 9, 0).await;
    let refused = game.find(&stack, json!({ "game_modes": ["arena"] })).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert!(servers_of(stack.store(), &game.created.game, game.namespace_id()).await.unwrap().is_empty());
}

/// A draw for the lobby of this number, by a find that looked for a place at `looked_at`.
async fn draw(
    scene: &Scene,
    number: u32,
    looked_at: Timestamp,
    full: Option<&NurseryServer>,
) -> (String, u32) {
    let build_id = scene.game.created.version.config.servers.as_ref().unwrap().build_id();
    let pool = scene.game.pool("arena", "fra").placement(Some(build_id));
    let (lobby_id, ambient) = (format!("lobby-{number}").parse::<LobbyId>().unwrap(), scene.stack.ambient());
    let fresh = (&ServerId::from(ambient.uuid()), &BurstSecret::random(&ambient));
    let in_vain = full.map_or(0, |_| 1);
    let drawing = Drawing { lobby_id: &lobby_id, in_vain, full, capacity: 100, looked_at };
    let drawn = scene.stack.store().draw_in_nursery(&pool, &drawing, fresh, ambient.now()).await.unwrap();
    let Draw::Drawn { first, position, .. } = drawn else { unreachable!("{drawn:?}") };
    (first.to_string(), position)
}

/// I15: the servers of a draw that is not long ago may not be in the index that the find saw.
#[tokio::test]
async fn a_find_that_looked_before_the_last_draw_was_old_draws_in_the_same_nursery() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "capacity": 100 })).await;
    let clock = &scene.stack.clock;
    let (first, _) = draw(&scene, 1, clock.now(), None).await;
    for position in 1..4 {
        clock.advance(Duration::from_millis(1_900));
        assert_eq!(draw(&scene, 10 + position, clock.now(), None).await, (first.clone(), position));
    }
    let looked_at = clock.now();
    clock.advance(Duration::from_secs(30));
    assert_eq!(draw(&scene, 2, looked_at, None).await, (first.clone(), 4), "it stalled for long");
    clock.advance(Duration::from_millis(2_100));
    let (next, position) = draw(&scene, 3, clock.now(), None).await;
    assert_ne!(next, first);
    assert_eq!(position, 0);
}

#[tokio::test]
async fn a_nursery_whose_last_server_is_full_is_drawn_from_no_more() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "capacity": 100 })).await;
    let now = scene.stack.clock.now();
    let (first, _) = draw(&scene, 1, now, None).await;
    let full = NurseryServer { first: first.parse().unwrap(), nth: 0 };
    // Finds that saw the server in the index took its places.
    let (next, position) = draw(&scene, 2, now, Some(&full)).await;
    assert_ne!(next, first);
    assert_eq!(position, 0);
    // Who learns it later draws where the others do.
    assert_eq!(draw(&scene, 3, now, Some(&full)).await, (next, 1));
}

/// Beyond, its item would take more write units.
#[tokio::test]
async fn a_nursery_has_256_draws_at_most_or_those_of_one_server() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7, "capacity": 100 })).await;
    let now = scene.stack.clock.now();
    let (first, _) = draw(&scene, 0, now, None).await;
    for number in 1..200 {
        assert_eq!(draw(&scene, number, now, None).await, (first.clone(), number));
    }
    let (next, position) = draw(&scene, 200, now, None).await;
    assert_ne!(next, first);
    assert_eq!(position, 0);
}

/// A network that counts the transactions on it.
#[derive(Debug)]
struct Transactions<L> {
    link: L,
    count: Arc<AtomicU32>,
}

impl<L: Link> Link for Transactions<L> {
    fn carry(&self, call: Call) -> Carried {
        self.count.fetch_add(u32::from(call.operation == "TransactWriteItems"), Ordering::Relaxed);
        self.link.carry(call)
    }
}

fn is_draw(call: &Call) -> bool {
    call.operation == "UpdateItem" && String::from_utf8_lossy(&call.body).contains("nursery/")
}

/// I15: refused there, it took another place, which yet another find had drawn.
#[tokio::test]
async fn the_last_place_of_a_server_is_there_for_the_find_that_drew_it() {
    let scene = Arc::new(Scene::new(Scene::arena(1), json!({ "build": "7", "capacity": 2 })).await);
    let body = json!({ "game_modes": ["arena"] });
    let (other, wants) = (Arc::clone(&scene), body.clone());
    let happens = async move {
        let mut find = Box::pin(other.game.find(&other.stack, wants));
        other.requested_by(&mut find).await;
    };
    let link = Before::new(scene.stack.stack.store_link(), is_draw, happens);
    let count = Arc::new(AtomicU32::new(0));
    let instance = scene.stack.instance_over(Transactions { link, count: Arc::clone(&count) });
    let places = async {
        while scene.servers().await.iter().map(|server| server.used).sum::<u32>() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = places => {}
        found = instance.find(&scene.game.public, &body) => panic!("{found:?}"),
    }
    assert_eq!(scene.server().await.used, 2);
    assert_eq!(count.load(Ordering::Relaxed), 1, "its creation was refused");
}

/// I15: the find that had drawn it took another place, and in the end a server too many was requested.
#[tokio::test]
async fn a_place_on_a_server_just_requested_is_left_to_the_find_that_drew_it() {
    let scene = Scene::new(Scene::arena(1), json!({ "build": 7, "capacity": 2 })).await;
    let find = || Box::pin(scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })));
    let used = async || {
        let servers = scene.servers().await;
        let mut used: Vec<_> = servers.iter().map(|server| server.used).collect();
        used.sort_unstable();
        used
    };
    let mut first = find();
    scene.requested_by(&mut first).await;
    let now = scene.stack.clock.now();
    let (_, position) = draw(&scene, 1, now, None).await;
    assert_eq!((position, used().await), (1, vec![1]));
    let mut second = find();
    scene.placed_by(&mut second, 2).await;
    assert_eq!(used().await, [1, 1], "it drew the next place");
    // Who drew it crashed.
    scene.stack.clock.advance(Duration::from_secs(2));
    let mut third = find();
    scene.placed_by(&mut third, 3).await;
    assert_eq!(used().await, [1, 2]);
}

#[tokio::test]
async fn lobbies_that_a_registration_leaves_waiting_are_ready_after_a_heartbeat() {
    const LOBBIES: usize = 103;
    let servers = json!({ "build": 7, "capacity": 200, "start_seconds": 60 });
    let scene = Scene::new(Scene::arena(10), servers).await;
    let (game, stack) = (&scene.game, &scene.stack);
    let creates = (0..LOBBIES).map(|_| game.play(stack, "lobbies/create", json!({ "game_mode": "arena" })));
    let creates = join_all(creates);
    let lobbies = async |is_ready: bool| {
        let lobbies = stack.all_lobbies(game.namespace_id()).await;
        lobbies.iter().filter(|lobby| lobby.launch.is_none() == is_ready).count()
    };
    let starts = async {
        while lobbies(false).await < LOBBIES {
            tokio::task::yield_now().await;
        }
        scene.look(&scene.server().await).await;
        scene.register(&scene.order()).await.expect_ok();
        assert_eq!((lobbies(true).await, lobbies(false).await), (100, LOBBIES - 100));
        let mut page = scene.beat(&scene.order()).await.expect_ok().body;
        while let Some(cursor) = page["cursor"].as_str() {
            page =
                scene.serve(&scene.order(), "heartbeat", json!({ "cursor": cursor })).await.expect_ok().body;
        }
        assert_eq!(lobbies(true).await, LOBBIES);
    };
    let (created, ()) = tokio::join!(creates, starts);
    let created: BTreeSet<_> = created.into_iter().map(|seat| seat.expect_ok().lobby_id()).collect();
    assert_eq!(created.len(), LOBBIES);
}

/// A starter so slow that the start is given up, and its end done, before the process runs.
struct Slow<'a> {
    scene: &'a Scene,
    server: Server,
    ended: Mutex<Vec<Option<String>>>,
}

impl Starter for Slow<'_> {
    async fn start(&self, _: &Order) -> Result<String, NotStarted> {
        self.scene.stack.clock.advance(Duration::from_secs(121));
        assert_eq!(self.scene.look(&self.server).await, Next::Nothing, "given up, and ended");
        Ok("late".to_owned())
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        self.ended.lock().unwrap().push(order.handle.clone());
        Ok(())
    }
}

/// I18: its process never registers, so that no refusal ends it.
#[tokio::test]
async fn a_process_that_runs_after_its_start_was_given_up_is_ended() {
    let scene = Scene::new(Scene::arena(10), json!({ "build": 7 })).await;
    let find = scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] }));
    let starts = async {
        let server = scene.requested().await;
        let slow = Slow { scene: &scene, server: server.clone(), ended: Mutex::default() };
        let (store, keys) = (scene.stack.store().clone(), Arc::clone(scene.stack.stack.keys()));
        let launching = Launching::new(store, keys, scene.stack.ambient(), String::new(), slow);
        assert_eq!(launching.look(&server.server, 0).await.unwrap(), Next::Nothing);
        assert_eq!(*launching.starter().ended.lock().unwrap(), [Some("late".to_owned())]);
    };
    // The find's own time is long over.
    let (_timed_out, ()) = tokio::join!(find, starts);
}

#[tokio::test]
async fn what_an_old_build_leaves_of_the_cap_is_there_for_the_new_one() {
    let scene = Scene::with_cap(Scene::arena(1), json!({ "build": 7, "capacity": 2 }), 2).await;
    let (game, stack) = (&scene.game, &scene.stack);
    let seat = scene.find_and_start().await;
    game.connect(stack, &seat).await.expect_ok();
    let old = scene.server().await;
    assert_eq!((old.used, old.allotted), (1, 2), "all of the cap");
    let modes = Scene::arena(1);
    run_version(stack, game, json!({ "game_modes": modes, "servers": { "build": 8 } })).await;
    stack.clock.advance(Duration::from_secs(61));
    scene.beat(&scene.order()).await.expect_ok();
    game.register(stack, "new", json!({ "build": 8 })).await;
    let find = async || game.find(stack, json!({ "game_modes": ["arena"] })).await;
    let lobby = game.lobby(stack, &find().await.expect_ok().lobby_id()).await;
    assert_eq!(lobby.server.unwrap().server_id.as_str(), "new");
    assert_eq!(find().await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
}

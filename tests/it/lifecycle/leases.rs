//! Game servers that fall silent: hidden at the end of their lease, revived by a late heartbeat, replaced
//! when their room is needed (I6, I10).

use std::time::Duration;

use harness::{TestStack, all_servers};
use serde_json::json;
use shared::{
    base::ambient::Timestamp,
    models::{
        ids::LobbyId,
        lobby::{Lobby, Stage},
        pool::Tags,
        server::Server,
    },
    store::creation::{Creation, CreationOutcome},
};

use super::{find, find_existing, game, listed};

const MINUTE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test]
async fn from_the_end_of_its_lease_a_killed_servers_lobbies_are_never_found() {
    let stack = TestStack::start().await;
    let game = game(&stack, "killed", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    stack.clock.advance(MINUTE - MOMENT);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), lobby_id);
    stack.clock.advance(MOMENT);
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I6");
    assert_eq!(game.join(&stack, &lobby_id).await.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"));
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
}

#[tokio::test]
async fn a_late_heartbeat_revives_a_lobby_that_was_not_replaced() {
    let stack = TestStack::start().await;
    let game = game(&stack, "late", json!({})).await;
    game.register(&stack, "one", json!({ "capacity": 2 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    stack.clock.advance(10 * MINUTE);
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    // A find that looks for a place puts the silent server out of sight; its places are of no use, so its
    // lobby stays.
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [seat.lobby_id()]);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), seat.lobby_id(), "I10");
}

#[tokio::test]
async fn what_a_server_ran_that_is_silent_for_an_hour_is_over_and_costs_nothing() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("killed", modes, 100, 0).await;
    // All places of one are taken, the other has some left, a third one drains.
    for (server_id, capacity) in [("full", 2), ("free", 3), ("drains", 2)] {
        game.register(&stack, server_id, json!({ "capacity": capacity, "lease_seconds": 600 })).await;
        for _ in 0..2 {
            let seat = find(&stack, &game).await.expect_ok();
            game.connect(&stack, &seat).await.expect_ok();
        }
        if server_id == "drains" {
            game.serve(&stack, "deregister", json!({ "server_id": server_id })).await.expect_ok();
        }
    }
    let look = async || {
        let instance = stack.instance();
        instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await
    };
    stack.clock.advance(40 * MINUTE);
    let _refused = look().await;
    let answer = game.heartbeat(&stack, "full").await.expect_ok();
    assert_eq!(listed(&answer).len(), 2, "I10: silent for half an hour only");

    // Each is read an hour or so after the last time.
    for _ in 0..4 {
        stack.clock.advance(100 * MINUTE);
        let _refused = look().await;
    }
    let _lets_them_go = look().await;
    assert_eq!(game.live_lobbies(&stack).await, 0, "I2");
    let servers = all_servers(stack.store(), game.namespace_id()).await;
    let is_out = |server: &Server| server.placement_pool.is_none() || server.was_let_go_in_silence();
    assert!(servers.iter().all(is_out), "I14: {servers:?}");
}

#[tokio::test]
async fn a_heartbeat_within_the_gap_brings_lobbies_and_places_back() {
    let stack = TestStack::start().await;
    let game = game(&stack, "gap", json!({ "max_players": 2 })).await;
    game.register(&stack, "one", json!({ "capacity": 2 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    stack.clock.advance(10 * MINUTE);
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    let answer = game.heartbeat(&stack, "one").await.expect_ok();
    assert_eq!(listed(&answer), [seat.lobby_id()]);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), seat.lobby_id(), "I10");
    assert_ne!(find(&stack, &game).await.expect_ok().lobby_id(), seat.lobby_id(), "its second place");
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.connected.len(), 1);
}

#[tokio::test]
async fn a_lobby_of_a_dead_server_that_was_replaced_never_revives() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 4 } });
    let game = stack.make_game("replaced", modes, 1, 0).await;
    game.register(&stack, "one", json!({ "capacity": 1 })).await;
    let dead = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &dead).await.expect_ok();
    stack.clock.advance(MINUTE);
    // The namespace has no room for another lobby, so that the dead server's is needed.
    game.register(&stack, "two", json!({ "capacity": 1 })).await;
    let next = find(&stack, &game).await.expect_ok();
    assert_ne!(next.lobby_id(), dead.lobby_id());
    assert_eq!(game.lobby(&stack, &dead.lobby_id()).await.stage, Stage::Ended);
    let answer = game.heartbeat(&stack, "one").await.expect_ok();
    assert_eq!(listed(&answer), [""; 0], "I10");
    assert_eq!(game.connect(&stack, &dead).await.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    assert_eq!(game.live_lobbies(&stack).await, 1);
}

#[tokio::test]
async fn a_dead_servers_part_of_the_cap_is_recovered_by_the_next_find() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("cap", modes, 3, 0).await;
    game.register(&stack, "dies", json!({ "capacity": 3 })).await;
    for _ in 0..3 {
        let seat = find(&stack, &game).await.expect_ok();
        game.connect(&stack, &seat).await.expect_ok();
    }
    game.register(&stack, "lives", json!({ "capacity": 3, "lease_seconds": 0 })).await;
    assert_eq!(find(&stack, &game).await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
    stack.clock.advance(MINUTE);
    for count in 1..=3 {
        let seat = find(&stack, &game).await.expect_ok();
        assert_eq!(seat.body["ports"]["default"]["hostname"], "lives.example");
        assert_eq!(game.live_lobbies(&stack).await, 3, "I2, at find {count}");
    }
    assert_eq!(find(&stack, &game).await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
}

#[tokio::test]
async fn a_heartbeat_extends_the_lease_of_the_server_and_of_its_lobbies() {
    let stack = TestStack::start().await;
    let game = game(&stack, "extend", json!({})).await;
    let registered = game.register(&stack, "one", json!({})).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    let lobby_id = seat.lobby_id();
    let mut ends = vec![registered.body["lease_expires_at"].clone()];
    for _ in 0..5 {
        stack.clock.advance(MINUTE / 2);
        let answer = game.heartbeat(&stack, "one").await.expect_ok();
        ends.push(answer.body["lease_expires_at"].clone());
        let lobby = game.lobby(&stack, &lobby_id).await;
        assert_eq!(lobby.lease_until, stack.clock.now() + MINUTE);
        assert_eq!(ends.last(), Some(&json!(shared::base::ambient::time(lobby.lease_until))));
    }
    let mut sorted = ends.clone();
    sorted.sort_by_key(ToString::to_string);
    sorted.dedup();
    assert_eq!(ends, sorted, "each is later");
}

#[tokio::test]
async fn a_hundred_silent_servers_do_not_hide_a_living_one() {
    let stack = TestStack::start().await;
    let game = game(&stack, "silent", json!({})).await;
    for n in 0..110 {
        game.register(&stack, &format!("silent-{n}"), json!({ "lease_seconds": 1 })).await;
    }
    stack.clock.advance(MINUTE);
    game.register(&stack, "lives", json!({})).await;
    let seat = find(&stack, &game).await.expect_ok();
    assert_eq!(seat.body["ports"]["default"]["hostname"], "lives.example");
    game.heartbeat(&stack, "silent-7").await.expect_ok();
    game.heartbeat(&stack, "silent-109").await.expect_ok();
    let pool = game.pool("arena", "fra").placement(None);
    let arena = "arena".parse().unwrap();
    let (seen, _silent) = stack.store().servers_with_places(&pool, &arena, stack.clock.now()).await.unwrap();
    let mut seen: Vec<_> = seen.into_iter().map(|server| server.server.server_id.to_string()).collect();
    seen.sort();
    assert_eq!(
        seen,
        ["lives", "silent-109", "silent-7"],
        "a heartbeat brings a silent server back into sight"
    );
}

#[tokio::test]
async fn a_heartbeat_costs_a_write_unit_for_the_server_and_one_for_each_lobby() {
    use shared::store::meter::Meter;
    let stack = TestStack::start().await;
    let game = game(&stack, "units", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "capacity": 20 })).await;
    for _ in 0..20 {
        find(&stack, &game).await.expect_ok();
    }
    let meter = Meter::on();
    let store = stack.store().metered(meter.clone());
    let keys = std::sync::Arc::clone(stack.stack.keys());
    let instance = shared::function::instance::Instance::over(store, keys, stack.ambient());
    let operation = heartbeat_server::HeartbeatServer::start(&instance).unwrap();
    let request = harness::instance::request(
        &[("authorization", &format!("Bearer {}", game.server))],
        &json!({ "server_id": "one" }),
    );
    use shared::function::operation::Operation as _;
    stack.clock.advance(MINUTE / 2);
    let answer = operation.call(&request).await.unwrap();
    assert_eq!(answer.lobbies.len(), 20);
    // The second heartbeat finds the settings in the cache.
    let before = meter.usage();
    stack.clock.advance(MINUTE / 4);
    operation.call(&request).await.unwrap();
    let cost = meter.usage() - before;
    assert_eq!((cost.calls, cost.write_units), (23, 21.0));
    assert!(cost.read_units <= 11.0, "{cost:?}");
}

#[tokio::test]
async fn a_server_that_gives_up_its_lease_keeps_its_lobbies_in_sight_for_good() {
    let stack = TestStack::start().await;
    let game = game(&stack, "unleased", json!({ "max_players": 8 })).await;
    game.register(&stack, "one", json!({ "capacity": 2 })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    // It was silent so long that a find put it out of sight.
    stack.clock.advance(10 * MINUTE);
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    for said in ["once", "again in that moment, when its lobbies have no lease to give up"] {
        game.register(&stack, "one", json!({ "capacity": 2, "lease_seconds": 0 })).await;
        let lobby = game.lobby(&stack, &lobby_id).await;
        let sight = (lobby.lease_until, lobby.joinable_from, lobby.freed_at);
        assert_eq!(sight, (Timestamp::NEVER, Some(lobby.created_at), Some(stack.clock.now())), "{said}");
    }
    stack.clock.advance(10_000 * MINUTE);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), lobby_id, "I4");
}

#[tokio::test]
async fn a_creation_that_comes_late_takes_no_place_on_a_record_that_is_to_go() {
    let stack = TestStack::start().await;
    let game = game(&stack, "expiring", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    let lobby = game.lobby(&stack, &lobby_id).await;
    game.end_lobby(&stack, &lobby_id).await.expect_ok();
    let (server, then) = (all_servers(stack.store(), game.namespace_id()).await.remove(0), stack.clock.now());
    stack.clock.advance(10 * MINUTE);
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let lobby = Lobby { lobby_id: LobbyId::from(stack.ambient().uuid()), ..lobby };
    let creation = Creation {
        lobby,
        server,
        lobby_count_max: 1_000,
        block: Some(1),
        requests: None,
        renewal: None,
        tags: Tags::new(),
        config: None,
    };
    let outcome = stack.store().create_lobby(&creation, then).await.unwrap();
    assert!(matches!(outcome, CreationOutcome::NoPlace(Some(_))), "{outcome:?}");
    assert_eq!(game.live_lobbies(&stack).await, 0, "I2");
}

#[tokio::test]
async fn a_late_hint_of_when_all_were_connected_does_not_hide_a_seat_reserved_since() {
    let stack = TestStack::start().await;
    let game = game(&stack, "hinted", json!({ "max_players": 2, "reservation_seconds": 60 })).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    let mut seats = Vec::new();
    for _ in 0..2 {
        seats.push(find(&stack, &game).await.expect_ok());
        game.connect(&stack, seats.last().unwrap()).await.expect_ok();
    }
    let connected = game.lobby(&stack, &seats[0].lobby_id()).await;
    stack.clock.advance(MOMENT);
    game.disconnect(&stack, &seats[0]).await.expect_ok();
    assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), seats[0].lobby_id());
    stack.store().hide_full_lobby(&connected).await.unwrap();
    // The reservation lapses, and its seat can be had again.
    stack.clock.advance(MINUTE);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), seats[0].lobby_id(), "I4");
}

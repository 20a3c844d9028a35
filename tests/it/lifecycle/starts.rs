//! Processes that run game servers start, crash and start again under the same name.

#![expect(clippy::panic, reason = "code of tests outside of test functions")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{
    Answer, TestGame, TestStack, all_servers,
    game_server::registration,
    interference::{Before, Repeating},
    new_game,
};
use muster_local::{
    emulator::link::{Call, patient_client_over},
    stack::table_names,
};
use serde_json::{Value, json};
use shared::{
    cloud::issuing::Issuer,
    hosting::game_server::GameServers,
    models::{
        lifecycle::{Illegal, Transition},
        lobby::Stage,
        rights::GameRight,
        server::Server,
        token::{Claims, CredentialKind, Owner},
    },
    store::{client::Store, lobby_data::Part, transitions::TransitionOutcome},
};

use super::{STATE, find, find_existing, game, listed, send_over, serve_over};

/// Another start of the server `one` elsewhere.
fn elsewhere(start_id: &str) -> Value {
    let ports = json!({ "default": { "hostname": "b.example", "port": 1, "protocol": "udp" } });
    registration("one", &json!({ "start_id": start_id, "region_id": "nyc", "ports": ports }))
}

async fn serve(stack: &TestStack, game: &TestGame, operation: &str, start_id: &str) -> Answer {
    game.serve(stack, operation, json!({ "server_id": "one", "start_id": start_id })).await
}

#[tokio::test]
async fn a_new_start_ends_what_the_one_before_ran_and_its_clients_seats_with_it() {
    let stack = TestStack::start().await;
    let mut new = new_game("restart", json!({ "arena": { "regions": ["fra", "nyc"], "max_players": 4 } }), 9);
    new.namespaces[0].max_players_per_client = 2;
    let game = stack.make_game_of(new, 0).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    let (played, reserved) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    assert_eq!(played.lobby_id(), reserved.lobby_id());
    game.connect(&stack, &played).await.expect_ok();
    game.host(&stack, &played.lobby_id(), STATE, json!({ "round": 1 })).await.expect_ok();
    assert_eq!(find(&stack, &game).await.refusal().1, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");

    game.serve(&stack, "register", elsewhere("two")).await.expect_ok();
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ended);
    let states = stack.store().lobby_data(&[played.lobby_id().parse().unwrap()], Part::State).await.unwrap();
    assert!(states.is_empty(), "its state goes with it");
    assert_eq!(game.live_lobbies(&stack).await, 0, "I2");
    assert_eq!(find_existing(&stack, &game).await.refusal().1, "MATCHMAKER_NO_AVAILABLE_LOBBIES", "I6");
    let there = json!({ "game_modes": ["arena"], "regions": ["nyc"] });
    let next = game.find(&stack, there).await.expect_ok();
    assert_eq!(next.body["ports"]["default"]["host"], "b.example:1");
    assert_eq!(listed(&serve(&stack, &game, "heartbeat", "two").await.expect_ok()), [next.lobby_id()]);
}

#[tokio::test]
async fn what_an_earlier_start_requests_late_changes_nothing() {
    let stack = TestStack::start().await;
    let game = game(&stack, "late", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    game.serve(&stack, "register", elsewhere("two")).await.expect_ok();
    let there = json!({ "game_modes": ["arena"], "regions": ["nyc"] });
    let played = game.find(&stack, there.clone()).await.expect_ok();
    let before = game.game_server(&stack, "one").await;

    stack.clock.advance(Duration::from_secs(30));
    let again = game.serve(&stack, "register", registration("one", &json!({}))).await;
    assert_eq!(again.refusal(), (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));
    for operation in ["heartbeat", "deregister"] {
        let late = serve(&stack, &game, operation, "one-1").await;
        assert_eq!(late.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"), "{operation}");
    }
    assert_eq!(game.game_server(&stack, "one").await, before);
    assert_eq!(game.find(&stack, there).await.expect_ok().lobby_id(), played.lobby_id());
    // Who names no start means the one that is there.
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [played.lobby_id()]);
}

#[tokio::test]
async fn what_an_earlier_start_writes_late_changes_nothing() {
    let stack = TestStack::start().await;
    let game = game(&stack, "late-writes", json!({})).await;
    game.register(&stack, "one", json!({ "lease_seconds": 3_600 })).await;
    let earlier = game.game_server(&stack, "one").await;
    game.register(&stack, "one", json!({ "start_id": "two" })).await;
    let played = find(&stack, &game).await.expect_ok();
    let lobby = game.lobby(&stack, &played.lobby_id()).await;

    let (store, now) = (stack.store(), stack.clock.now());
    assert!(!store.extend_lease(&lobby.lobby_id, &earlier, now).await.unwrap(), "I6");
    let drained =
        store.make_transition(&lobby.lobby_id, &Transition::Drain(earlier.start()), now).await.unwrap();
    assert!(matches!(drained, TransitionOutcome::Illegal(Illegal::OtherStart, _)), "{drained:?}");
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await, lobby);
    let deregistered = store.deregister_server(&earlier, now).await.unwrap();
    assert!(deregistered.is_err(), "{deregistered:?}");
    assert!(!game.game_server(&stack, "one").await.is_deregistered());
}

#[tokio::test]
async fn without_a_name_an_equal_registration_within_ten_seconds_is_the_same_start() {
    let stack = TestStack::start().await;
    let game = game(&stack, "unnamed", json!({ "idle_seconds": 600 })).await;
    let unnamed = |fields: Value| {
        let mut body = registration("one", &fields);
        body["start_id"] = Value::Null;
        body
    };
    game.serve(&stack, "register", unnamed(json!({}))).await.expect_ok();
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    let stage = async || game.lobby(&stack, &lobby_id).await.stage;
    for _ in 0..3 {
        stack.clock.advance(Duration::from_secs(3));
        game.serve(&stack, "register", unnamed(json!({}))).await.expect_ok();
        assert_eq!(stage().await, Stage::Ready);
    }
    // However often it is repeated, a start is repeated for ten seconds.
    stack.clock.advance(Duration::from_secs(1));
    game.serve(&stack, "register", unnamed(json!({}))).await.expect_ok();
    assert_eq!(stage().await, Stage::Ended);

    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    game.serve(&stack, "register", unnamed(json!({ "capacity": 5 }))).await.expect_ok();
    assert_eq!(game.lobby(&stack, &lobby_id).await.stage, Stage::Ended, "another body is another start");
}

#[tokio::test]
async fn a_new_start_ends_a_hundred_lobbies_in_a_call_and_gets_none_before_the_last_has_ended() {
    for sends_heartbeats in [false, true] {
        let stack = TestStack::start().await;
        let game = game(&stack, "many", json!({ "max_players": 1 })).await;
        game.register(&stack, "one", json!({ "capacity": 300 })).await;
        let mut earlier = BTreeSet::new();
        for _ in 0..205 {
            earlier.insert(find(&stack, &game).await.expect_ok().lobby_id());
        }
        let mut left = vec![game.live_lobbies(&stack).await];
        let restart = registration("one", &json!({ "capacity": 300, "start_id": "two" }));
        let first = game.serve(&stack, "register", restart.clone()).await;
        assert_eq!(first.refusal(), (503, "MATCHMAKER_CONTENTION"), "{sends_heartbeats}");
        assert!(first.headers.contains_key("retry-after"));
        loop {
            left.push(game.live_lobbies(&stack).await);
            if left.last() == Some(&0) {
                break;
            }
            assert_eq!(
                find(&stack, &game).await.refusal().1,
                "MATCHMAKER_NO_SERVER_AVAILABLE",
                "{sends_heartbeats}"
            );
            if sends_heartbeats {
                let answer = serve(&stack, &game, "heartbeat", "two").await.expect_ok();
                assert_eq!(listed(&answer), Vec::<String>::new());
            } else {
                let _perhaps_done = game.serve(&stack, "register", restart.clone()).await;
            }
        }
        assert_eq!(left, [205, 105, 5, 0], "{sends_heartbeats}");
        game.serve(&stack, "register", restart).await.expect_ok();
        let next = find(&stack, &game).await.expect_ok();
        assert!(!earlier.contains(&next.lobby_id()));
        assert_eq!(listed(&serve(&stack, &game, "heartbeat", "two").await.expect_ok()), [next.lobby_id()]);
    }
}

#[tokio::test]
async fn a_repeated_registration_clears_no_server_that_has_opened_since() {
    let stack = TestStack::start().await;
    let game = stack.make_game("repeated", json!({ "arena": { "regions": ["fra"] } }), 9, 1).await;
    let _lobby = find(&stack, &game).await.expect_ok();
    let open = game.game_server(&stack, "fra").await;
    assert_eq!(open.used, 1);
    // As the repetition saw it: its first call was ending the one lobby of the start before.
    let clearing = Server { is_clearing: true, ..open.clone() };
    assert!(stack.store().replace_server(&clearing, &open).await.unwrap());
    assert!(stack.store().replace_server(&open, &clearing).await.unwrap());
    // That call opened it, and the start has got a lobby of its own.
    assert!(!stack.store().replace_server(&clearing, &clearing).await.unwrap(), "I4");
    assert!(!game.game_server(&stack, "fra").await.is_clearing);
}

/// Stores that `server` has still to end lobbies of an earlier start.
async fn set_clearing(stack: &TestStack, server: &Server) {
    let values = [(":true", AttributeValue::Bool(true))];
    stack.alter_server(&server.server, "SET #is_clearing = :true", &values).await;
}

#[tokio::test]
async fn a_slow_call_of_a_start_ends_no_lobby_created_since_the_server_opened() {
    let stack = TestStack::start().await;
    let game = game(&stack, "slow", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let seen = game.game_server(&stack, "one").await;
    set_clearing(&stack, &seen).await;
    // Another call opens the server before this one reads its lobbies.
    let (store, instance, public) = (stack.store().clone(), stack.instance(), game.public.clone());
    let opens = async move {
        store.open_server(&seen).await.unwrap().unwrap();
        instance.find(&public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    };
    let reads_lobbies = |call: &Call| String::from_utf8_lossy(&call.body).contains("by_server");
    let link = Arc::new(Before::new(stack.stack.store_link(), reads_lobbies, opens));
    assert_eq!(serve_over(&stack, &game, link, "heartbeat-server").await, 200);
    assert_eq!(game.live_lobbies(&stack).await, 1, "I4");
}

#[tokio::test]
async fn an_opening_that_is_repeated_late_shows_no_server_that_was_let_go() {
    let stack = TestStack::start().await;
    let game = game(&stack, "opened", json!({})).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    set_clearing(&stack, &game.game_server(&stack, "one").await).await;
    let opens = |call: &Call| String::from_utf8_lossy(&call.body).contains("REMOVE #is_clearing");
    let link = Arc::new(Repeating::new(stack.stack.store_link(), opens));
    assert_eq!(serve_over(&stack, &game, link.clone(), "heartbeat-server").await, 200);
    stack.clock.advance(Duration::from_secs(2));
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(link.repeat().await, 400);
    game.heartbeat(&stack, "one").await.expect_ok();
    assert!(!game.game_server(&stack, "one").await.was_let_go_in_silence(), "I10");
}

/// Its lease lapses while the start before it is cleared away.
#[tokio::test]
async fn a_server_that_was_let_go_before_it_opened_stays_out_of_sight() {
    let stack = TestStack::start().await;
    let game = game(&stack, "slow-clear", json!({})).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    set_clearing(&stack, &game.game_server(&stack, "one").await).await;
    let clearing = game.game_server(&stack, "one").await;
    stack.clock.advance(Duration::from_secs(2));
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    stack.store().open_server(&clearing).await.unwrap().unwrap_err();
    assert!(game.game_server(&stack, "one").await.was_let_go_in_silence(), "I14");
    game.heartbeat(&stack, "one").await.expect_ok();
    find(&stack, &game).await.expect_ok();
}

#[tokio::test]
async fn a_start_that_deregistered_does_not_come_back_while_it_runs_lobbies() {
    let stack = TestStack::start().await;
    let game = game(&stack, "drained", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let played = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &played).await.expect_ok();
    serve(&stack, &game, "deregister", "one-1").await.expect_ok();
    let again = game.serve(&stack, "register", registration("one", &json!({}))).await;
    assert_eq!(again.refusal(), (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [played.lobby_id()]);
    game.disconnect(&stack, &played).await.expect_ok();
    game.register(&stack, "one", json!({})).await;
    find(&stack, &game).await.expect_ok();

    // A new start does, and what the one before still ran is over.
    let played = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &played).await.expect_ok();
    serve(&stack, &game, "deregister", "one-1").await.expect_ok();
    game.register(&stack, "one", json!({ "start_id": "two" })).await;
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ended);
    find(&stack, &game).await.expect_ok();
    assert_eq!(game.live_lobbies(&stack).await, 1);
}

#[tokio::test]
async fn a_registration_that_a_deregistration_outran_brings_no_server_back_while_it_runs_lobbies() {
    let stack = TestStack::start().await;
    let game = game(&stack, "outrun", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let played = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &played).await.expect_ok();
    let (store, seen, now) =
        (stack.store().clone(), game.game_server(&stack, "one").await, stack.clock.now());
    let deregisters = async move {
        store.deregister_server(&seen, now).await.unwrap().unwrap();
    };
    let registers = |call: &Call| String::from_utf8_lossy(&call.body).contains(":new_capacity");
    let link = Arc::new(Before::new(stack.stack.store_link(), registers, deregisters));
    let again = registration("one", &json!({}));
    assert_eq!(send_over(&stack, &game, link, "register-server", again).await, 400);
    assert!(game.game_server(&stack, "one").await.is_deregistered(), "I6");
}

#[tokio::test]
async fn a_start_that_deregisters_while_it_ends_earlier_lobbies_leaves_nothing() {
    let stack = TestStack::start().await;
    let game = game(&stack, "both", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "capacity": 200 })).await;
    for _ in 0..120 {
        find(&stack, &game).await.expect_ok();
    }
    let restart = registration("one", &json!({ "capacity": 200, "start_id": "two" }));
    assert_eq!(game.serve(&stack, "register", restart).await.refusal().0, 503);
    serve(&stack, &game, "deregister", "two").await.expect_ok();
    assert_eq!(game.live_lobbies(&stack).await, 0);
    assert!(game.game_server(&stack, "one").await.placement_pool.is_none(), "I14");
}

#[tokio::test]
async fn a_registration_without_server_id_that_is_repeated_makes_one_server() {
    let stack = TestStack::start().await;
    let game = game(&stack, "lost", json!({})).await;
    let mut names = Vec::new();
    let range =
        json!({ "default": { "hostname": "a", "port_range": { "min": 1, "max": 9 }, "protocol": "udp" } });
    for (start_id, hostname, has_range) in [
        ("p1", "a", false),
        ("p1", "a", false),
        ("p1", "b", false),
        ("p1", "a", true),
        ("p1", "a", true),
        ("p2", "a", true),
    ] {
        stack.clock.advance(Duration::from_secs(60));
        let mut body = registration(hostname, &json!({ "server_id": null, "start_id": start_id }));
        if has_range {
            body["ports"] = range.clone();
        }
        let registered = game.serve(&stack, "register", body).await.expect_ok();
        names.push(registered.body["server_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((&names[0], &names[3]), (&names[1], &names[4]), "its answer was lost");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4, "other processes are other servers");
}

#[tokio::test]
async fn a_start_without_server_id_takes_the_place_of_the_one_before_at_its_address() {
    for start_ids in [[json!("p1"), json!("p2")], [Value::Null, Value::Null]] {
        let stack = TestStack::start().await;
        let game = game(&stack, "address", json!({})).await;
        let starts = async |game: &TestGame, start_id: &Value, fields: Value| {
            let mut body = registration("a", &fields);
            (body["server_id"], body["start_id"]) = (Value::Null, start_id.clone());
            game.serve(&stack, "register", body).await.expect_ok().body["server_id"].clone()
        };
        let dead = starts(&game, &start_ids[0], json!({})).await;
        let seat = find(&stack, &game).await.expect_ok();
        // It is killed; its lease has most of a minute left.
        stack.clock.advance(Duration::from_secs(11));
        let renamed =
            json!({ "ports": { "other": { "hostname": "A.example", "port": 7_777, "protocol": "udp" } } });
        let next = starts(&game, &start_ids[1], renamed).await;
        assert_eq!(next, dead, "{start_ids:?}");
        assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.stage, Stage::Ended);
        for _ in 0..5 {
            let found = find(&stack, &game).await.expect_ok();
            assert_ne!(found.lobby_id(), seat.lobby_id());
            assert!(found.body["ports"].get("other").is_some(), "{}", found.body);
        }

        // At another port, in another region, by another token or with a range of ports, there may be
        // another.
        let port = json!({ "default": { "hostname": "a.example", "port": 7_778, "protocol": "udp" } });
        let range =
            json!({ "hostname": "a.example", "port_range": { "min": 1, "max": 9 }, "protocol": "udp" });
        let others = [
            starts(&game, &start_ids[1], json!({ "ports": port })).await,
            starts(&game, &start_ids[1], json!({ "region_id": "nyc" })).await,
            starts(&by_another_token(&stack, &game).await, &start_ids[1], json!({})).await,
            starts(&game, &json!("p3"), json!({ "ports": { "default": range } })).await,
            starts(&game, &json!("p4"), json!({ "ports": { "default": range } })).await,
        ];
        let names: BTreeSet<_> = others.iter().chain([&dead]).map(ToString::to_string).collect();
        assert_eq!(names.len(), 6, "{start_ids:?}");
        assert_eq!(game.live_lobbies(&stack).await, 2, "none of them ended a lobby");
    }
}

#[tokio::test]
async fn of_two_starts_at_one_address_at_once_one_is_left() {
    let stack = TestStack::start().await;
    let game = game(&stack, "at-once", json!({})).await;
    let start = async |start_id: &str| {
        let body = registration("a", &json!({ "server_id": null, "start_id": start_id }));
        game.serve(&stack, "register", body).await
    };
    let answers = tokio::join!(start("p1"), start("p2"), start("p3"));
    for answer in [answers.0, answers.1, answers.2] {
        assert!([200, 400].contains(&answer.refusal().0), "{}", answer.body);
    }
    let servers = all_servers(stack.store(), game.namespace_id()).await;
    assert_eq!(servers.len(), 1, "{servers:?}");
}

/// The game with another server token of its namespace.
async fn by_another_token(stack: &TestStack, game: &TestGame) -> TestGame {
    let right = GameRight::of_operator(game.game_id().clone());
    let right = right.on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    let issuer = Issuer::new(stack.store().clone(), Arc::clone(stack.stack.keys()), stack.ambient());
    let server = issuer.credential(&right, CredentialKind::Server).await.unwrap();
    TestGame { created: game.created.clone(), public: game.public.clone(), server }
}

/// The token that owns a server.
fn owner(stack: &TestStack, game: &TestGame) -> Owner {
    let claims = stack.stack.keys().verify(&game.server, stack.clock.now()).unwrap();
    let Claims::Server(credential) = claims else { panic!("{claims:?}") };
    Owner::from(&credential)
}

const REFUSED: (u16, &str) = (400, "MATCHMAKER_LOBBY_STATE_CONFLICT");

#[tokio::test]
async fn another_token_takes_a_server_over_with_its_start_or_once_its_lease_expired() {
    let stack = TestStack::start().await;
    let game = game(&stack, "owned", json!({})).await;
    let other = by_another_token(&stack, &game).await;
    game.register(&stack, "one", json!({ "lease_seconds": 60 })).await;
    let played = find(&stack, &game).await.expect_ok();
    let refused = async || other.serve(&stack, "register", elsewhere("two")).await.refusal().1 == REFUSED.1;
    assert!(refused().await);
    // Without the start, a heartbeat renews the server, and leaves it to its token.
    other.heartbeat(&stack, "one").await.expect_ok();
    assert!(refused().await);
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ready, "I4");
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &game)));

    stack.clock.advance(Duration::from_secs(60));
    other.serve(&stack, "register", elsewhere("two")).await.expect_ok();
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ended);
    assert_eq!(serve(&stack, &game, "heartbeat", "one-1").await.refusal().1, "MATCHMAKER_SERVER_NOT_FOUND");
    let back = game.serve(&stack, "register", registration("one", &json!({ "start_id": "three" }))).await;
    assert_eq!(back.refusal(), REFUSED);

    // The start is what only its process knows.
    serve(&stack, &game, "heartbeat", "two").await.expect_ok();
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &game)));
    let third = other.serve(&stack, "register", registration("one", &json!({ "start_id": "three" }))).await;
    assert_eq!(third.refusal(), REFUSED);
    other.serve(&stack, "register", elsewhere("two")).await.expect_ok();
    other.serve(&stack, "register", registration("one", &json!({ "start_id": "three" }))).await.expect_ok();
}

#[tokio::test]
async fn another_token_takes_a_server_without_lease_over_once_the_first_is_revoked_or_it_is_removed() {
    for is_revoked in [true, false] {
        let stack = TestStack::start().await;
        let game = game(&stack, "kept", json!({})).await;
        let (first, other) = (by_another_token(&stack, &game).await, by_another_token(&stack, &game).await);
        first.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
        find(&stack, &game).await.expect_ok();
        stack.clock.advance(Duration::from_secs(24 * 3_600));
        let again = registration("one", &json!({ "start_id": "two", "lease_seconds": 0 }));
        assert_eq!(other.serve(&stack, "register", again.clone()).await.refusal(), REFUSED);
        let right = GameRight::of_operator(game.game_id().clone());
        if is_revoked {
            let token_id = owner(&stack, &first).token_id;
            stack.store().revoke_token(&right, &token_id, stack.clock.now()).await.unwrap();
            stack.clock.advance(Duration::from_secs(1));
        } else {
            let right = right.on_namespace(game.namespace_id(), stack.store()).await.unwrap();
            let servers = GameServers::new(stack.store().clone(), stack.ambient());
            servers.remove(&right, "one".parse().unwrap()).await.unwrap();
        }
        other.serve(&stack, "register", again).await.expect_ok();
        assert_eq!(game.live_lobbies(&stack).await, 0, "{is_revoked}");
    }
}

#[tokio::test]
async fn a_heartbeat_with_its_start_gives_a_server_without_lease_to_another_token() {
    let stack = TestStack::start().await;
    let game = game(&stack, "rotated", json!({})).await;
    let other = by_another_token(&stack, &game).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    other.heartbeat(&stack, "one").await.expect_ok();
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &game)));
    serve(&stack, &other, "heartbeat", "one-1").await.expect_ok();
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &other)));
}

#[tokio::test]
async fn a_server_of_an_earlier_release_belongs_to_the_first_token_that_renews_it() {
    let stack = TestStack::start().await;
    let game = game(&stack, "earlier", json!({})).await;
    let other = by_another_token(&stack, &game).await;
    for (server_id, is_renewed) in [("left", false), ("renewed", true)] {
        game.register(&stack, server_id, json!({})).await;
        // As an earlier release left it.
        let server = game.game_server(&stack, server_id).await.server;
        stack.alter_server(&server, "REMOVE #owner", &[]).await;
        if is_renewed {
            game.heartbeat(&stack, server_id).await.expect_ok();
            assert_eq!(game.game_server(&stack, server_id).await.owner, Some(owner(&stack, &game)));
        }
        let body = registration(server_id, &json!({ "start_id": "two" }));
        assert_eq!(other.serve(&stack, "register", body).await.status == 200, !is_renewed);
    }
}

/// A registration's write.
fn is_registration(call: &Call) -> bool {
    String::from_utf8_lossy(&call.body).contains(":new_capacity")
}

#[tokio::test]
async fn a_new_start_is_refused_that_a_transfer_to_another_token_outran() {
    let stack = TestStack::start().await;
    let game = game(&stack, "transfer", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let other = owner(&stack, &by_another_token(&stack, &game).await);
    let (store, now, key) =
        (stack.store().clone(), stack.clock.now(), game.game_server(&stack, "one").await.server);
    let transfers = async move {
        let start_id = "one-1".to_owned().try_into().unwrap();
        store.extend_server_lease(&key, Some(&start_id), &other, now).await.unwrap();
    };
    let link = Arc::new(Before::new(stack.stack.store_link(), is_registration, transfers));
    let body = registration("one", &json!({ "start_id": "two" }));
    assert_eq!(send_over(&stack, &game, link, "register-server", body).await, 400);
    assert_eq!(game.game_server(&stack, "one").await.start_id.unwrap().as_str(), "one-1");
}

#[tokio::test]
async fn a_new_start_is_refused_that_the_first_owner_outran() {
    let stack = TestStack::start().await;
    let game = game(&stack, "first-owner", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let seen = game.game_server(&stack, "one").await;
    stack.alter_server(&seen.server, "REMOVE #owner", &[]).await;
    let other = owner(&stack, &by_another_token(&stack, &game).await);
    let (store, now) = (stack.store().clone(), stack.clock.now());
    let renews = async move {
        store.extend_server_lease(&seen.server, None, &other, now).await.unwrap();
    };
    let link = Arc::new(Before::new(stack.stack.store_link(), is_registration, renews));
    let body = registration("one", &json!({ "start_id": "two" }));
    assert_eq!(send_over(&stack, &game, link, "register-server", body).await, 400);
}

#[tokio::test]
async fn a_new_start_of_another_token_is_refused_that_a_heartbeat_outran() {
    let stack = TestStack::start().await;
    let game = game(&stack, "revived", json!({})).await;
    let other = by_another_token(&stack, &game).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    stack.clock.advance(Duration::from_secs(2));
    let (store, now, seen) =
        (stack.store().clone(), stack.clock.now(), game.game_server(&stack, "one").await);
    let renews = async move {
        store.extend_server_lease(&seen.server, None, &seen.owner.unwrap(), now).await.unwrap();
    };
    let link = Arc::new(Before::new(stack.stack.store_link(), is_registration, renews));
    let body = registration("one", &json!({ "start_id": "two" }));
    assert_eq!(send_over(&stack, &other, link, "register-server", body).await, 400);
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &game)));
}

#[tokio::test]
async fn a_server_without_lease_that_started_again_is_not_transferred_by_an_earlier_heartbeat() {
    let stack = TestStack::start().await;
    let game = game(&stack, "earlier-start", json!({})).await;
    let other = by_another_token(&stack, &game).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    let seen = game.game_server(&stack, "one").await;
    let next = Server { start_id: Some("two".to_owned().try_into().unwrap()), ..seen.clone() };
    let store = stack.store().clone();
    let starts_again = async move {
        assert!(store.replace_server(&next, &seen).await.unwrap());
    };
    let transfers = |call: &Call| String::from_utf8_lossy(&call.body).contains("SET #owner = :token");
    let link = Arc::new(Before::new(stack.stack.store_link(), transfers, starts_again));
    let body = json!({ "server_id": "one", "start_id": "one-1" });
    assert_eq!(send_over(&stack, &other, link, "heartbeat-server", body).await, 400);
    assert_eq!(game.game_server(&stack, "one").await.owner, Some(owner(&stack, &game)));
}

/// As long as the settings of a function may be old.
const SETTINGS_AGE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_server_that_another_token_took_over_meanwhile_is_not_removed_with_the_first() {
    let stack = TestStack::start().await;
    let game = game(&stack, "moved-on", json!({})).await;
    let (first, other) = (by_another_token(&stack, &game).await, by_another_token(&stack, &game).await);
    first.register(&stack, "one", json!({})).await;
    let played = find(&stack, &game).await.expect_ok();
    let right = GameRight::of_operator(game.game_id().clone());
    let token_id = owner(&stack, &first).token_id;
    stack.store().revoke_token(&right, &token_id, stack.clock.now()).await.unwrap();
    let (store, now, by) = (stack.store().clone(), stack.clock.now(), owner(&stack, &other));
    let key = game.game_server(&stack, "one").await.server;
    let transfers = async move {
        let start_id = "one-1".to_owned().try_into().unwrap();
        store.extend_server_lease(&key, Some(&start_id), &by, now).await.unwrap();
    };
    let deregisters = |call: &Call| String::from_utf8_lossy(&call.body).contains("#ranked_at = :later");
    let link = Arc::new(Before::new(stack.stack.store_link(), deregisters, transfers));
    let store = Store::new(patient_client_over(link), table_names());
    let at_once = stack.ambient().with_sleeper(|_| std::future::ready(()));
    let servers = GameServers::new(store, at_once);
    let sweep = servers.remove_revoked(&game.created.game, game.namespace_id(), SETTINGS_AGE).await.unwrap();
    assert_eq!((sweep.removed, sweep.left), (Vec::new(), Vec::new()));
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ready, "I4");
}

#[tokio::test]
async fn a_server_that_opens_while_a_look_puts_it_out_of_sight_stays_in_sight() {
    let stack = TestStack::start().await;
    let game = game(&stack, "opening", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    // Its new start ended the last lobby of the one before, and is about to open it.
    let seen = game.game_server(&stack, "one").await;
    set_clearing(&stack, &seen).await;
    let store = stack.store().clone();
    let opens = async move {
        let opened = store.open_server(&seen).await.unwrap();
        assert!(opened.is_ok(), "{opened:?}");
    };
    let is_hiding = |call: &Call| String::from_utf8_lossy(&call.body).contains("SET #free_from = :again");
    let link = Before::new(stack.stack.store_link(), is_hiding, opens);
    let instance = stack.instance_over(link);
    // It was clearing as the find first saw it, and is open at the second look.
    instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    find(&stack, &game).await.expect_ok();
}

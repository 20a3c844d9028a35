//! Game servers come, change and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
    time::Duration,
};

use harness::{
    Answer, TestStack, all_servers,
    game_server::registration,
    instance::Instance,
    interference::{Before, Losing, Repeating},
};
use muster_local::{
    emulator::link::{Call, Carried, Link},
    stack::table_names,
};
use serde_json::{Value, json};
use shared::{
    auth::settings::SettingsCache,
    base::{ambient::Timestamp, usage::Usage},
    cloud::provision::add_version,
    models::{
        errors::Error,
        ids::{LobbyId, ServerKey},
        lifecycle::Transition,
        lobby::{EndCause, Lobby, Stage},
        pool::Tags,
        server::Server,
    },
    overview::Overview,
    store::{
        creation::{Creation, CreationOutcome},
        ending::EndOutcome,
        listing::servers_let_go_of,
        transitions::TransitionOutcome,
    },
};
use tokio::sync::Notify;

use super::{CLOSED, find, find_existing, game, listed, never_ready, serve_over};

/// The paths of a refused registration.
fn paths(answer: &Answer) -> BTreeSet<String> {
    assert_eq!(answer.refusal(), (400, "MATCHMAKER_INVALID_SERVER"), "{}", answer.body);
    let errors = answer.body["metadata"]["errors"].as_array().into_iter().flatten();
    let path = |error: &Value| {
        let parts = error["path"].as_array().into_iter().flatten().filter_map(Value::as_str);
        parts.collect::<Vec<_>>().join("/")
    };
    errors.map(path).collect()
}

#[tokio::test]
async fn a_registration_that_cannot_work_is_refused_and_names_every_label() {
    let stack = TestStack::start().await;
    let game = game(&stack, "refused", json!({})).await;
    let port = |port: Value| json!({ "hostname": "a.example", "port": port, "protocol": "udp" });
    let range = |min: u32, max: u32| json!({ "hostname": "a.example", "port_range": { "min": min, "max": max }, "protocol": "udp" });
    for (fields, expected) in [
        (
            json!({ "ports": { "game": port(json!(1)), "web": { "hostname": "a", "port": 2, "protocol": "https" } } }),
            vec!["ports/game/mixed-tls", "ports/web/mixed-tls"],
        ),
        (
            json!({ "ports": { "zero": port(json!(0)), "over": port(json!(65_536)), "fine": port(json!(65_535)) } }),
            vec!["ports/over/port/out-of-range", "ports/zero/port/out-of-range"],
        ),
        (
            json!({ "ports": { "back": range(2, 1), "zero": range(0, 1), "over": range(1, 65_536), "fine": range(1, 65_535) } }),
            vec![
                "ports/back/port_range/min-above-max",
                "ports/over/port_range/out-of-range",
                "ports/zero/port_range/out-of-range",
            ],
        ),
        (json!({ "ports": { "Upper": port(json!(1)) } }), vec!["ports/Upper/label/invalid"]),
        (
            json!({ "ports": { "g": { "hostname": "not a host", "port": 1, "protocol": "udp" } } }),
            vec!["ports/g/hostname/invalid"],
        ),
        (
            json!({ "ports": { "g": { "hostname": "0.0.0.0", "port": 1, "protocol": "udp" } } }),
            vec!["ports/g/hostname/not-reachable"],
        ),
        (json!({ "ports": {} }), vec!["ports/too-few"]),
        (json!({ "region_id": "mars", "capacity": 0 }), vec!["capacity/too-low", "region_id/not-found"]),
        (
            json!({ "lease_seconds": 86_401, "capacity": 1_000_001 }),
            vec!["capacity/too-high", "lease_seconds/too-high"],
        ),
    ] {
        let answer = game.serve(&stack, "register", registration("bad", &fields.clone())).await;
        assert_eq!(paths(&answer), expected.into_iter().map(str::to_owned).collect(), "{fields}");
    }
    let nothing = game.heartbeat(&stack, "bad").await;
    assert_eq!(nothing.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));
}

#[tokio::test]
async fn players_get_a_host_that_they_can_put_into_a_url() {
    let stack = TestStack::start().await;
    for (name, hostname, shown) in [
        ("bare", "2001:db8::7", "[2001:db8::7]"),
        ("bracketed", "[2001:db8::7]", "[2001:db8::7]"),
        ("underscored", "game_1.example.com", "game_1.example.com"),
        ("international", "b\u{fc}cher.example", "xn--bcher-kva.example"),
    ] {
        let game = game(&stack, name, json!({})).await;
        let port = json!({ "hostname": hostname, "port": 7_777, "protocol": "http" });
        game.register(&stack, "one", json!({ "ports": { "game": port } })).await.expect_ok();
        let found = find(&stack, &game).await.expect_ok();
        let port = &found.body["ports"]["game"];
        assert_eq!(
            (port["hostname"].as_str(), port["host"].as_str()),
            (Some(shown), Some(&*format!("{shown}:7777")))
        );
        let url: url::Url = format!("ws://{}/", port["host"].as_str().unwrap()).parse().unwrap();
        assert_eq!((url.host_str(), url.port()), (Some(shown), Some(7_777)));
    }
}

#[tokio::test]
async fn a_server_that_an_index_shows_twice_is_read_once() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("twice", modes, 4, 1).await;
    let keys: Vec<_> = all_servers(stack.store(), game.namespace_id())
        .await
        .into_iter()
        .map(|server| server.server)
        .collect();
    let shown = [&keys[..], &keys[..]].concat();
    let read = stack.store().servers_as_they_are(&shown).await.unwrap();
    let read: Vec<_> = read.into_iter().map(|server| server.server).collect();
    assert_eq!(read.len(), keys.len());
    assert_eq!(read.into_iter().collect::<BTreeSet<_>>(), keys.into_iter().collect());
}

#[tokio::test]
async fn a_server_gets_lobbies_of_its_modes_and_region_up_to_its_capacity() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra", "nyc"], "max_players": 1 },
                        "duel": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("fitting", modes, 99, 0).await;
    game.register(&stack, "duels", json!({ "game_modes": ["duel"], "capacity": 1 })).await;
    game.register(&stack, "far", json!({ "region_id": "nyc" })).await;
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let duel = json!({ "game_modes": ["duel"] });
    assert_eq!(
        game.find(&stack, duel.clone()).await.expect_ok().body["ports"]["default"]["hostname"],
        "duels.example"
    );
    assert_eq!(game.find(&stack, duel).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
}

#[tokio::test]
async fn registering_again_updates_a_server_but_never_moves_live_lobbies() {
    let stack = TestStack::start().await;
    let game = game(&stack, "again", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "capacity": 1 })).await;
    let first = find(&stack, &game).await.expect_ok();
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));

    let moved = json!({ "capacity": 1, "region_id": "nyc",
                        "ports": { "default": { "hostname": "b.example", "port": 1, "protocol": "udp" } } });
    let refused = game.serve(&stack, "register", registration("one", &moved.clone())).await;
    assert_eq!(paths(&refused), ["ports/in-use", "region_id/in-use"].map(str::to_owned).into());
    game.register(&stack, "one", json!({ "capacity": 2 })).await;
    let second = find(&stack, &game).await.expect_ok();
    assert_ne!(second.lobby_id(), first.lobby_id());
    game.register(&stack, "one", json!({ "capacity": 1 })).await;
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    for seat in [&first, &second] {
        game.disconnect(&stack, seat).await.expect_ok();
    }
    game.serve(&stack, "register", registration("one", &moved)).await.expect_ok();
    let far = json!({ "game_modes": ["arena"], "regions": ["nyc"] });
    assert_eq!(game.find(&stack, far).await.expect_ok().body["ports"]["default"]["host"], "b.example:1");
}

#[tokio::test]
async fn servers_that_left_make_no_refused_find_and_no_count_dearer() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("matches", json!({ "arena": { "regions": ["fra"], "max_players": 1 } }), 1, 1).await;
    let body = json!({ "game_modes": ["arena"] });
    game.find(&stack, body.clone()).await.expect_ok();
    let refused = async || {
        let instance = stack.instance();
        assert!(matches!(instance.find(&game.public, &body).await, Err(Error::TooManyLobbies)));
        let count = Overview::new(instance.store().clone(), stack.ambient());
        let settings = SettingsCache::new(stack.store().clone(), stack.ambient(), Duration::ZERO);
        let settings = settings.settings(game.game_id(), game.namespace_id()).await.unwrap().unwrap();
        stack.clock.advance(Duration::from_secs(5));
        assert_eq!(count.statistics(&settings).await.unwrap().player_count, 1);
        instance.usage()
    };
    let _the_first = refused().await;
    let before = refused().await;
    // A process for each match: one that says goodbye, one that is killed and read once by a find that looks
    // for a place.
    for n in 0..250 {
        let ports = json!({ "default": { "hostname": "x.example", "port": 1 + n, "protocol": "udp" } });
        let fields =
            json!({ "server_id": null, "start_id": null, "capacity": 1, "lease_seconds": 1, "ports": ports });
        let registered = game.serve(&stack, "register", registration("x", &fields)).await.expect_ok();
        if n % 2 == 0 {
            let server_id = registered.body["server_id"].clone();
            game.serve(&stack, "deregister", json!({ "server_id": server_id })).await.expect_ok();
        }
    }
    stack.clock.advance(Duration::from_secs(2));
    let _meets_them = stack.instance().find(&game.public, &body).await;
    stack.clock.advance(Duration::from_secs(2));
    let after = refused().await;
    assert_eq!(after.calls, before.calls, "I14");
    assert_eq!((after.read_units, after.write_units), (before.read_units, before.write_units), "I14");

    // Known all the same: who deregistered may do so again, who was cut off comes back.
    let servers = all_servers(stack.store(), game.namespace_id()).await;
    let known =
        |is_gone: bool| servers.iter().find(|server| server.used == 0 && server.is_deregistered() == is_gone);
    let (gone, silent) = (known(true).unwrap(), known(false).unwrap());
    assert!(gone.placement_pool.is_none() && silent.was_let_go_in_silence());
    let gone = json!({ "server_id": gone.server.server_id });
    game.serve(&stack, "deregister", gone.clone()).await.expect_ok();
    let answer = game.serve(&stack, "heartbeat", gone).await;
    assert_eq!(answer.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));
    game.heartbeat(&stack, silent.server.server_id.as_str()).await.expect_ok();
    let (shown, _) = stack.store().servers(&silent.pool(), None).await.unwrap();
    assert!(shown.iter().any(|server| server.server == silent.server), "I10");
}

#[tokio::test]
async fn a_server_that_is_heard_again_after_hours_gets_lobbies() {
    let stack = TestStack::start().await;
    let game = stack.make_game("back", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    stack.clock.advance(Duration::from_secs(2));
    let refused = find(&stack, &game).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    stack.clock.advance(Duration::from_secs(8 * 3_600));
    game.heartbeat(&stack, "one").await.expect_ok();
    let instance = stack.instance();
    assert!(instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.is_ok(), "I10");
}

#[tokio::test]
async fn a_server_that_fell_silent_without_lobbies_is_listed_until_it_is_heard_and_read_by_no_find() {
    let stack = TestStack::start().await;
    let game = stack.make_game("silent", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    game.register(&stack, "left", json!({ "lease_seconds": 1 })).await;
    game.serve(&stack, "deregister", json!({ "server_id": "left" })).await.expect_ok();
    let silent_since = stack.clock.now() + Duration::from_secs(1);
    let listed = async |since: Timestamp| {
        let found = servers_let_go_of(stack.store(), &game.created.game, game.namespace_id(), since).await;
        let servers = found.unwrap();
        servers.into_iter().map(|server| server.server.server_id.to_string()).collect::<Vec<_>>()
    };
    stack.clock.advance(Duration::from_secs(2));
    assert!(listed(Timestamp::default()).await.is_empty(), "no find has seen it yet");
    let refused = async || {
        let instance = stack.instance();
        let outcome = instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await;
        assert!(matches!(outcome, Err(Error::NoServerAvailable(_))), "{outcome:?}");
        instance.usage().read_units
    };
    let first = refused().await;
    stack.clock.advance(Duration::from_secs(2));
    let second = refused().await;
    assert!(second < first, "I14: {second} read units, as {first} when it was seen");
    assert_eq!(listed(silent_since.before(Duration::from_millis(1))).await, ["one"]);
    assert!(listed(silent_since).await.is_empty());
    game.heartbeat(&stack, "one").await.expect_ok();
    assert!(listed(Timestamp::default()).await.is_empty());
}

#[tokio::test]
async fn a_server_that_was_let_go_is_not_shown_by_a_heartbeat_from_before() {
    let stack = TestStack::start().await;
    let game = stack.make_game("late", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
    let find_it_silent = async || {
        stack.clock.advance(Duration::from_secs(2));
        let outcome = stack.instance().find(&game.public, &json!({ "game_modes": ["arena"] })).await;
        assert!(matches!(outcome, Err(Error::NoServerAvailable(_))), "{outcome:?}");
    };
    let is_in_index = async || {
        let servers = all_servers(stack.store(), game.namespace_id()).await;
        servers.iter().any(|server| server.placement_pool.is_some() && !server.was_let_go_in_silence())
    };
    find_it_silent().await;
    assert!(!is_in_index().await, "I14");

    // It comes back, is shown, and is killed: meanwhile its last call is on its way a second time.
    let is_show = |call: &Call| String::from_utf8_lossy(&call.body).contains("#placement_pool = :pool");
    let link = Arc::new(Repeating::new(stack.stack.store_link(), is_show));
    assert_eq!(serve_over(&stack, &game, link.clone(), "heartbeat-server").await, 200);
    assert!(is_in_index().await, "I10");
    find_it_silent().await;
    assert_eq!(link.repeat().await, 400);
    assert!(!is_in_index().await, "I14");
}

#[tokio::test]
async fn a_find_that_is_refused_again_within_a_second_reads_no_server() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("full", json!({ "arena": { "regions": ["fra"], "max_players": 1 } }), 150, 0).await;
    for n in 0..150 {
        game.add_server(&stack, &format!("one-{n}"), "fra", 1, Timestamp::NEVER).await;
    }
    let body = json!({ "game_modes": ["arena"] });
    let mut seats = Vec::new();
    for _ in 0..150 {
        seats.push(game.find(&stack, body.clone()).await.expect_ok());
    }
    let instance = stack.instance();
    let refused = async || {
        let before = instance.usage();
        let outcome = instance.find(&game.public, &body).await;
        assert!(matches!(outcome, Err(Error::TooManyLobbies)), "{outcome:?}");
        instance.usage() - before
    };
    let first = refused().await;
    assert!(first.read_units > 150.0, "{first:?}");
    let again = refused().await;
    assert!(again.calls <= 3 && again.read_units <= 5.0 && again.write_units < 0.5, "{again:?}");

    // A player who leaves frees capacity for a find a second later.
    game.connect(&stack, &seats[77]).await.expect_ok();
    game.disconnect(&stack, &seats[77]).await.expect_ok();
    stack.clock.advance(Duration::from_secs(1));
    instance.find(&game.public, &body).await.unwrap();
    assert_eq!(game.live_lobbies(&stack).await, 150, "I2");
}

#[tokio::test]
async fn a_lobby_that_may_end_is_found_among_a_thousand_full_servers() {
    const SERVERS: u32 = 1_000;
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 5 } });
    let game = stack.make_game("thousand", modes, SERVERS, 0).await;
    let body = json!({ "game_modes": ["arena"] });
    game.add_server(&stack, "first", "fra", 1, Timestamp::NEVER).await;
    let first = game.find(&stack, body.clone()).await.expect_ok();
    // All are closed, so that no index of open lobbies helps; in one nobody will connect, in the others they
    // play.
    let template = game.lobby(&stack, &first.lobby_id()).await;
    let over = Lobby { closed: true, joinable_from: None, ..template };
    let played = Lobby {
        reserved: BTreeMap::new(),
        connected: over.reserved.keys().map(|seat| (seat.clone(), Timestamp::NEVER)).collect(),
        ..over.clone()
    };
    game.connect(&stack, &first).await.expect_ok();
    for n in 1..SERVERS {
        let id = format!("full-{n}");
        game.add_server(&stack, &id, "fra", 1, Timestamp::NEVER).await;
        let key = ServerKey { namespace_id: game.namespace_id().clone(), server_id: id.parse().unwrap() };
        let server = stack.store().server(&key).await.unwrap().unwrap();
        let lobby = if n == 777 { &over } else { &played };
        let lobby_id = LobbyId::from(stack.ambient().uuid());
        let lobby = Lobby { lobby_id, server: Some(key), ..lobby.clone() };
        let creation = Creation {
            lobby,
            server,
            lobby_count_max: SERVERS,
            block: Some(1),
            requests: None,
            renewal: None,
            tags: Tags::new(),
            config: None,
        };
        let created = stack.store().create_lobby(&creation, stack.clock.now()).await.unwrap();
        assert_eq!(created, CreationOutcome::Created);
    }

    let refused = async |instance: &Instance| {
        let before = instance.usage();
        let outcome = instance.find(&game.public, &body).await;
        assert!(matches!(outcome, Err(Error::TooManyLobbies)), "{outcome:?}");
        instance.usage() - before
    };
    let searching = refused(&stack.instance()).await;
    assert!(searching.read_units > 1_000.0, "{searching:?}");
    for _ in 0..8 {
        let (one, other) = (stack.instance(), stack.instance());
        let usage = [refused(&one).await, refused(&one).await, refused(&other).await];
        // One search for all instances; the first call of each reads settings and the index of its servers.
        assert!(usage.iter().all(|usage| usage.read_units < 20.0), "{usage:?}");
        assert!(usage[1].calls <= 3 && usage[1].read_units <= 5.0, "{usage:?}");
    }
    stack.clock.advance(Duration::from_secs(5));
    stack.instance().find(&game.public, &body).await.unwrap();
    assert_eq!(game.live_lobbies(&stack).await, SERVERS, "I2");
}

/// Refuses a find in one instance, again there, and in another one, which knows nothing; then ends a lobby
/// and finds at once in a third one. Returns what the refusals in the first two used but the first.
async fn refused_until_a_lobby_ends(cap: u32, places: u32, code: &str) -> [Usage; 2] {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 1 });
    let modes = json!({ "arena": mode, "duel": mode });
    let game = stack.make_game("again", modes, cap, places).await;
    let answer = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let duel = json!({ "game_modes": ["duel"] });
    let refused = async |instance: &Instance| {
        let before = instance.usage();
        assert_eq!(instance.find(&game.public, &duel).await.unwrap_err().status_and_code().1, code);
        instance.usage() - before
    };
    let (one, other) = (stack.instance(), stack.instance());
    let searching = refused(&one).await;
    assert!(searching.write_units > 0.0, "{searching:?}");
    let used = [refused(&one).await, refused(&other).await];
    game.end_lobby(&stack, answer.body["lobby"]["lobby_id"].as_str().unwrap()).await.expect_ok();
    stack.instance().find(&game.public, &duel).await.unwrap();
    assert_eq!(game.live_lobbies(&stack).await, 1, "I2");
    used
}

#[tokio::test]
async fn a_find_that_is_refused_after_another_was_reads_little_and_sees_what_ended_since() {
    // The look, and the head of its criteria with the game server as it is. An instance that knows nothing
    // reads settings and version, the index of servers, and where that burst has its lobby.
    let [again, elsewhere] = refused_until_a_lobby_ends(1, 2, "MATCHMAKER_TOO_MANY_LOBBIES").await;
    assert_eq!((again.calls, again.write_units), (2, 0.0));
    assert!(elsewhere.calls <= 7 && elsewhere.write_units < 0.5, "{elsewhere:?}");
    // The same with the index of servers.
    let [again, elsewhere] = refused_until_a_lobby_ends(9, 1, "MATCHMAKER_NO_SERVER_AVAILABLE").await;
    assert_eq!((again.calls, again.write_units), (3, 0.0));
    assert!(elsewhere.calls <= 7 && elsewhere.write_units < 0.5, "{elsewhere:?}");
}

#[tokio::test]
async fn a_search_without_result_is_believed_for_a_second() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 5 },
                        "duel": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("believed", modes, 1, 2).await;
    game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let duel = json!({ "game_modes": ["duel"] });
    let find = async || stack.instance().find(&game.public, &duel).await;
    stack.clock.advance(Duration::from_millis(4_900));
    assert!(matches!(find().await, Err(Error::TooManyLobbies)));
    // The lobby may end now; that all are full was found a moment ago, by another instance.
    stack.clock.advance(Duration::from_millis(100));
    assert!(matches!(find().await, Err(Error::TooManyLobbies)));
    // While that ages, one of many searches again, and finds the capacity.
    stack.clock.advance(Duration::from_millis(400));
    find().await.unwrap();
    assert_eq!(game.live_lobbies(&stack).await, 1, "I2");
}

#[tokio::test]
async fn a_mode_that_no_version_of_the_game_has_is_refused() {
    let stack = TestStack::start().await;
    let game = game(&stack, "modes", json!({})).await;
    let modes = |modes: Value| registration("one", &json!({ "game_modes": modes }));
    let refused = game.serve(&stack, "register", modes(json!(["arena", "arenna", "duel"]))).await;
    assert_eq!(
        paths(&refused),
        ["game_modes/arenna/not-found", "game_modes/duel/not-found"].map(str::to_owned).into()
    );
    game.serve(&stack, "register", modes(json!(["arena"]))).await.expect_ok();

    // One of a version that no namespace runs yet, or any more.
    let config = json!({ "game_modes": { "duel": { "regions": ["fra"] } } });
    let config = serde_json::from_value(config).unwrap();
    add_version(stack.store(), &stack.ambient(), game.game_id(), "2".to_owned(), config).await.unwrap();
    game.serve(&stack, "register", modes(json!(["arena", "duel"]))).await.expect_ok();
}

#[tokio::test]
async fn a_server_that_deregisters_with_its_lobbies_leaves_nothing_behind() {
    let stack = TestStack::start().await;
    let game = game(&stack, "at-once", json!({ "max_players": 2, "idle_seconds": 600 })).await;
    game.register(&stack, "one", json!({ "capacity": 2, "lease_seconds": 0 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    let leave = json!({ "server_id": "one", "end_lobbies": true });
    game.serve(&stack, "deregister", leave.clone()).await.expect_ok();
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.stage, Stage::Ended);
    assert_eq!(game.live_lobbies(&stack).await, 0, "I2");
    let servers = all_servers(stack.store(), game.namespace_id()).await;
    assert!(servers.iter().all(|server| server.placement_pool.is_none()), "I14");
    game.serve(&stack, "deregister", leave).await.expect_ok();
}

#[tokio::test]
async fn a_server_without_a_name_gets_one() {
    let stack = TestStack::start().await;
    let game = game(&stack, "named", json!({})).await;
    let mut names = BTreeSet::new();
    for hostname in ["x", "y", "z"] {
        let unnamed = registration(hostname, &json!({ "server_id": null, "start_id": null }));
        let answer = game.serve(&stack, "register", unnamed).await;
        names.insert(answer.expect_ok().body["server_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(names.len(), 3);
    for name in names {
        game.heartbeat(&stack, &name).await.expect_ok();
    }
}

#[tokio::test]
async fn a_deregistered_servers_lobbies_close_and_end_when_they_are_empty() {
    let stack = TestStack::start().await;
    let game = game(&stack, "gone", json!({ "max_players": 2, "idle_seconds": 600 })).await;
    game.register(&stack, "one", json!({})).await;
    let (played, empty) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    assert_eq!(played.lobby_id(), empty.lobby_id());
    game.connect(&stack, &played).await.expect_ok();
    game.disconnect(&stack, &empty).await.expect_ok();
    let kept = game.lobby(&stack, &played.lobby_id()).await;
    let full = [find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok()];
    for seat in &full {
        game.connect(&stack, seat).await.expect_ok();
    }
    let idle = full[1].lobby_id();
    game.disconnect(&stack, &full[1]).await.expect_ok();
    assert_eq!((kept.stage, game.live_lobbies(&stack).await), (Stage::Ready, 2));

    for _ in 0..2 {
        game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    }
    assert_eq!(game.lobby(&stack, &idle).await.stage, Stage::Ended, "the empty one ends at once");
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "I6");
    let answer = game.heartbeat(&stack, "one").await.expect_ok();
    assert_eq!((&answer.body["draining"], listed(&answer)), (&json!(true), [played.lobby_id()].into()));
    let reopen = game.host(&stack, &played.lobby_id(), CLOSED, json!({ "is_closed": false })).await;
    assert_eq!(reopen.refusal(), (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));

    // While it sends heartbeats, its players play on, and finds that need capacity do not end their lobby.
    for _ in 0..60 {
        stack.clock.advance(Duration::from_secs(59));
        game.heartbeat(&stack, "one").await.expect_ok();
    }
    assert_eq!(find(&stack, &game).await.refusal().0, 503);
    let lobby = game.lobby(&stack, &played.lobby_id()).await;
    assert_eq!((lobby.stage, lobby.held_seats(stack.clock.now())), (Stage::Ready, 2), "I4");
    game.disconnect(&stack, &played).await.expect_ok();
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ready);
    game.disconnect(&stack, &full[0]).await.expect_ok();
    assert_eq!(game.lobby(&stack, &played.lobby_id()).await.stage, Stage::Ended);
    assert_eq!(game.live_lobbies(&stack).await, 0);
    assert_eq!(game.heartbeat(&stack, "one").await.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"));

    game.register(&stack, "one", json!({})).await;
    find(&stack, &game).await.expect_ok();
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()).len(), 1);
}

#[tokio::test]
async fn a_heartbeat_closes_lobbies_that_a_crashed_deregistration_left_open() {
    let stack = TestStack::start().await;
    let game = game(&stack, "crashed", json!({ "max_players": 8 })).await;
    game.register(&stack, "one", json!({})).await;
    let played = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &played).await.expect_ok();
    let server = all_servers(stack.store(), game.namespace_id()).await.remove(0);
    stack.store().deregister_server(&server, stack.clock.now()).await.unwrap().unwrap();
    assert!(!game.lobby(&stack, &played.lobby_id()).await.closed);

    game.heartbeat(&stack, "one").await.expect_ok();
    let lobby = game.lobby(&stack, &played.lobby_id()).await;
    assert_eq!((lobby.closed, lobby.is_draining, lobby.stage), (true, true, Stage::Ready), "I6");
    assert_eq!(find_existing(&stack, &game).await.refusal().0, 400, "I6");
}

#[tokio::test]
async fn leaving_politely_is_never_worse_than_crashing() {
    for is_polite in [false, true] {
        let stack = TestStack::start().await;
        let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
        let game = stack.make_game("leaving", modes, 1, 0).await;
        game.register(&stack, "one", json!({ "lease_seconds": 10 })).await;
        let seat = find(&stack, &game).await.expect_ok();
        game.connect(&stack, &seat).await.expect_ok();
        if is_polite {
            game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
        }
        game.register(&stack, "two", json!({ "lease_seconds": 3_600 })).await;
        assert_eq!(find(&stack, &game).await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "{is_polite}");
        stack.clock.advance(Duration::from_secs(10));
        let next = find(&stack, &game).await.expect_ok();
        assert_ne!(next.lobby_id(), seat.lobby_id(), "{is_polite}");
        assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.stage, Stage::Ended, "{is_polite}");
        let one = all_servers(stack.store(), game.namespace_id()).await;
        let one = one.into_iter().find(|server| server.server.server_id.as_str() == "one").unwrap();
        assert_eq!(one.is_gone() && one.placement_pool.is_none(), is_polite, "I14");
    }
}

/// The deregistration crashes after its first write.
#[tokio::test]
async fn a_server_that_was_let_go_stays_out_of_sight_while_it_deregisters() {
    for goes_meanwhile in [false, true] {
        let stack = TestStack::start().await;
        let game = game(&stack, "let-go", json!({})).await;
        game.register(&stack, "one", json!({ "lease_seconds": 1 })).await;
        stack.clock.advance(Duration::from_secs(2));
        let (instance, public) = (stack.instance(), game.public.clone());
        let is_let_go = async move {
            let outcome = instance.find(&public, &json!({ "game_modes": ["arena"] })).await;
            assert!(matches!(outcome, Err(Error::NoServerAvailable(_))), "{outcome:?}");
        };
        let is_second = |call: &Call| String::from_utf8_lossy(&call.body).contains("REMOVE #placement_pool");
        let mut link: Arc<dyn Link> = Arc::new(Losing::calls(stack.stack.store_link(), is_second));
        if goes_meanwhile {
            let is_first = |call: &Call| String::from_utf8_lossy(&call.body).contains("#ranked_at = :later");
            link = Arc::new(Before::new(&link, is_first, is_let_go));
        } else {
            is_let_go.await;
        }
        assert_eq!(serve_over(&stack, &game, link, "deregister-server").await, 503);
        let server = all_servers(stack.store(), game.namespace_id()).await.remove(0);
        assert!(server.is_deregistered() && server.was_let_go_in_silence(), "I14, {goes_meanwhile}");
    }
}

/// As when it deregisters between an end's read of the lobby and the end, or an opening's of the server.
#[tokio::test]
async fn a_server_that_deregisters_while_its_last_lobby_ends_is_let_go_by_a_later_find() {
    for (lease_seconds, is_clearing) in [(0, false), (60, false), (0, true)] {
        let stack = TestStack::start().await;
        let game = game(&stack, "unseen", json!({ "max_players": 2 })).await;
        game.register(&stack, "one", json!({ "lease_seconds": lease_seconds })).await;
        let seat = find(&stack, &game).await.expect_ok();
        let (store, now) = (stack.store(), stack.clock.now());
        let the_server = async || all_servers(store, game.namespace_id()).await.remove(0);
        let (seen, lobby) = (the_server().await, game.lobby(&stack, &seat.lobby_id()).await);
        let server = Server { is_clearing, ..seen.clone() };
        assert!(store.replace_server(&server, &seen).await.unwrap());
        store.deregister_server(&server, now).await.unwrap().unwrap();
        let ended = store.end_lobby(&lobby, EndCause::Requested, &stack.ambient()).await;
        assert!(matches!(ended, Ok(EndOutcome::Ended)), "{ended:?}");
        if is_clearing {
            store.open_server(&server).await.unwrap().unwrap();
        }
        assert!(the_server().await.is_gone());
        stack.clock.advance(Duration::from_secs(2 * 3_600));
        assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
        let gone = the_server().await;
        assert_eq!((gone.placement_pool, gone.allotted), (None, 0), "I14, {lease_seconds} {is_clearing}");
    }
}

/// A deregistration's write that closes a lobby may arrive after the server registered again.
#[tokio::test]
async fn a_living_server_gets_lobbies_after_one_that_an_earlier_deregistration_closed() {
    let stack = TestStack::start().await;
    let game = game(&stack, "closed-late", json!({ "max_players": 2 })).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0, "capacity": 1 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    let lobby = game.lobby(&stack, &seat.lobby_id()).await;
    let drain = Transition::Drain(lobby.start.clone());
    let outcome = stack.store().make_transition(&lobby.lobby_id, &drain, stack.clock.now()).await;
    assert!(matches!(outcome, Ok(TransitionOutcome::Made(_))), "{outcome:?}");
    assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let end = json!({ "lobby_id": lobby.lobby_id });
    game.serve(&stack, "end-lobby", end).await.expect_ok();
    stack.clock.advance(Duration::from_secs(2));
    find(&stack, &game).await.expect_ok();
}

#[tokio::test]
async fn a_lobby_that_becomes_ready_at_the_last_moment_closes_with_its_deregistered_server() {
    let stack = TestStack::start().await;
    let game = game(&stack, "last-moment", json!({ "max_players": 2, "idle_seconds": 600 })).await;
    game.register(&stack, "one", json!({ "auto_ready": false, "lease_seconds": 0 })).await;
    let (timed_out, ()) = tokio::join!(find(&stack, &game), never_ready(&stack, &game));
    assert_eq!(timed_out.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
    let lobby = stack.all_lobbies(game.namespace_id()).await.remove(0);
    let in_time = lobby.created_at + Duration::from_secs(299);
    stack.clock.advance(Duration::from_secs(275));

    // The lobby is too late for the deregistration, its `ready` was in time, and arrives before the lobby's
    // end.
    let (store, lobby_id) = (stack.store().clone(), lobby.lobby_id.clone());
    let becomes_ready = async move {
        let outcome = store.make_transition(&lobby_id, &Transition::Ready, in_time).await.unwrap();
        assert!(matches!(outcome, TransitionOutcome::Made(_)), "{outcome:?}");
    };
    let link = Arc::new(Before::transaction(stack.stack.store_link(), becomes_ready));
    assert_eq!(serve_over(&stack, &game, link, "deregister-server").await, 200);
    let lobby = game.lobby(&stack, lobby.lobby_id.as_str()).await;
    assert_eq!((lobby.closed, lobby.is_draining), (true, true), "I6");
    assert_eq!(lobby.stage, Stage::Ended, "it is empty");
}

#[tokio::test]
async fn unknown_and_foreign_servers_are_not_found() {
    let stack = TestStack::start().await;
    let (here, there) = (game(&stack, "here", json!({})).await, game(&stack, "there", json!({})).await);
    there.register(&stack, "theirs", json!({})).await;
    for operation in ["heartbeat", "deregister"] {
        for server_id in ["theirs", "nobody"] {
            let answer = here.serve(&stack, operation, json!({ "server_id": server_id })).await;
            assert_eq!(answer.refusal(), (400, "MATCHMAKER_SERVER_NOT_FOUND"), "{operation} {server_id}");
        }
    }
    there.heartbeat(&stack, "theirs").await.expect_ok();
    assert_eq!(find_existing(&stack, &there).await.refusal().0, 400);
    find(&stack, &there).await.expect_ok();
}

#[tokio::test]
async fn a_heartbeat_lists_many_lobbies_page_by_page() {
    let stack = TestStack::start().await;
    let game = game(&stack, "pages", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "capacity": 250 })).await;
    let mut found = BTreeSet::new();
    for n in 0..205 {
        if n % 50 == 0 {
            stack.clock.advance(Duration::from_millis(1));
        }
        found.insert(find(&stack, &game).await.expect_ok().lobby_id());
    }
    let (mut seen, mut sizes, mut cursor) = (BTreeSet::new(), Vec::new(), Value::Null);
    loop {
        let body = json!({ "server_id": "one", "cursor": cursor });
        let page = game.serve(&stack, "heartbeat", body).await.expect_ok();
        sizes.push(listed(&page).len());
        seen.extend(listed(&page));
        cursor = page.body["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((sizes, seen == found), (vec![100, 100, 5], true));
    let forged = json!({ "server_id": "one", "cursor": "x" });
    assert_eq!(game.serve(&stack, "heartbeat", forged).await.refusal(), (400, "API_BAD_BODY"));
}

#[tokio::test]
async fn an_instance_that_knew_a_server_before_it_registered_again_uses_its_new_ports() {
    let stack = TestStack::start().await;
    let game = game(&stack, "moved", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({})).await;
    let instance = stack.instance();
    instance.warm_up(&game.public, &game.pool("arena", "fra")).await;
    let port = json!({ "default": { "hostname": "moved.example", "port": 1, "protocol": "udp" } });
    game.register(&stack, "one", json!({ "ports": port })).await;
    let find = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    let answer = serde_json::to_value(instance.find(&game.public, &find).await.unwrap()).unwrap();
    assert_eq!(answer["ports"]["default"]["host"], "moved.example:1");
}

#[tokio::test]
async fn an_instance_that_finds_a_server_full_reads_the_others_again_instead_of_trying_each() {
    let stack = TestStack::start().await;
    let game = game(&stack, "filled", json!({ "max_players": 1 })).await;
    for n in 0..8 {
        game.register(&stack, &format!("server-{n}"), json!({ "capacity": 1, "lease_seconds": 0 })).await;
    }
    let instance = stack.instance();
    instance.warm_up(&game.public, &game.pool("arena", "fra")).await;
    for _ in 0..7 {
        find(&stack, &game).await.expect_ok();
    }
    stack.clock.advance(Duration::from_secs(5));
    let before = instance.usage();
    let body = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    assert!(instance.find(&game.public, &body).await.is_ok());
    // A look, the head, a creation on a full server, two calls that read the others, and a creation.
    assert_eq!((instance.usage() - before).calls, 6);
}

/// A network that says when game servers were read.
#[derive(Debug)]
struct Reading(Arc<dyn Link>, Arc<Notify>);

impl Link for Reading {
    fn carry(&self, call: Call) -> Carried {
        let are_servers = call.operation == "BatchGetItem"
            && String::from_utf8_lossy(&call.body).contains(&*table_names().servers);
        let (carried, read) = (self.0.carry(call), Arc::clone(&self.1));
        Box::pin(async move {
            let answer = carried.await;
            if are_servers {
                read.notify_one();
            }
            answer
        })
    }
}

#[tokio::test]
async fn a_find_whose_last_known_place_went_to_another_of_its_instance_reads_on() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 1 });
    let modes = json!({ "arena": mode, "duel": mode, "other": mode });
    let game = stack.make_game("reads-on", modes, 99, 0).await;
    // The first page of the index has one place for either find, the second another.
    for n in 0..99 {
        game.register(&stack, &format!("other-{n}"), json!({ "game_modes": ["other"] })).await;
    }
    game.register(&stack, "first", json!({ "capacity": 1 })).await;
    stack.clock.advance(Duration::from_secs(1));
    game.register(&stack, "second", json!({ "capacity": 1 })).await;

    let (read, one) = (Arc::new(Notify::new()), Arc::new(OnceLock::<Arc<Instance>>::new()));
    let network: Arc<dyn Link> = Arc::new(Reading(Arc::clone(stack.stack.store_link()), Arc::clone(&read)));
    let (other, token) = (Arc::clone(&one), game.public.clone());
    let happens = async move {
        read.notified().await;
        let arena = json!({ "game_modes": ["arena"] });
        other.get().unwrap().find(&token, &arena).await.unwrap();
    };
    let network = Before::new(&network, |call| call.operation == "UpdateItem", happens);
    let instance = Arc::new(stack.instance_over(network));
    one.set(Arc::clone(&instance)).unwrap();
    let found = instance.find(&game.public, &json!({ "game_modes": ["duel"] })).await.unwrap();
    assert_eq!(found.ports["default"].hostname, "second.example", "I3");
}

#[tokio::test]
async fn an_instance_that_knew_a_server_before_it_deregistered_places_nothing_there() {
    let stack = TestStack::start().await;
    let game = game(&stack, "left", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    let instance = stack.instance();
    instance.warm_up(&game.public, &game.pool("arena", "fra")).await;
    game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    let find = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    let refused = instance.find(&game.public, &find).await.unwrap_err();
    assert_eq!(refused.status_and_code().1, "MATCHMAKER_NO_SERVER_AVAILABLE", "I6");
}

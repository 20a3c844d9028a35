//! Matching one request after the other: which lobby, and when a new one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use harness::{Answer, TestClock, TestGame, TestStack, instance::Instance, interference::Losing};
use muster_local::emulator::link::{Call, Carried, Link, patient_client_over};
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    cloud::provision,
    models::{lobby::Stage, rights::GameRight},
};

fn duel() -> Value {
    json!({ "duel": { "regions": ["fra"], "max_players": 2 } })
}

async fn lobby(stack: &TestStack, body: Value) -> String {
    stack.find(body).await.expect_ok().lobby_id()
}

#[tokio::test]
async fn the_same_criteria_lead_to_the_same_lobby_until_it_is_full() {
    let stack = TestStack::start().await;
    let mut lobbies = Vec::new();
    for _ in 0..25 {
        lobbies.push(lobby(&stack, json!({ "game_modes": ["arena"] })).await);
    }
    let first: Vec<_> = lobbies.chunks(10).map(|ten| ten[0].clone()).collect();
    for (ten, first) in lobbies.chunks(10).zip(&first) {
        assert!(ten.iter().all(|lobby| lobby == first));
    }
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[tokio::test]
async fn a_seat_not_connected_is_free_at_its_expiry_and_not_before() {
    let stack = TestStack::start().await;
    let game = stack.make_game("expiry", duel(), 9, 9).await;
    let find = || game.find(&stack, json!({ "game_modes": ["duel"] }));
    let first = find().await.expect_ok().lobby_id();
    stack.clock.advance(Duration::from_secs(60));
    assert_eq!(find().await.expect_ok().lobby_id(), first);

    stack.clock.advance(Duration::from_millis(59_999));
    let second = find().await.expect_ok().lobby_id();
    assert_ne!(second, first, "one millisecond before the expiry the seat is held");

    stack.clock.advance(Duration::from_millis(1));
    let seat = stack.seat(&find().await.expect_ok());
    // Both lobbies hold one seat and have one free; the older of equals wins.
    assert_eq!(seat.lobby_id.as_str(), first);
    let lobby = stack.store().lobby(&seat.lobby_id).await.unwrap().unwrap();
    assert_eq!((lobby.taken, lobby.reserved.len()), (2, 2));
    assert!(lobby.reserved.contains_key(&seat.seat_id));
}

#[tokio::test]
async fn a_full_lobby_whose_reservations_all_lapsed_is_found_again() {
    let stack = TestStack::start().await;
    let game = stack.make_game("lapsed", duel(), 9, 9).await;
    let find = || game.find(&stack, json!({ "game_modes": ["duel"], "prevent_auto_create_lobby": false }));
    let first = find().await.expect_ok().lobby_id();
    assert_eq!(find().await.expect_ok().lobby_id(), first);
    stack.clock.advance(Duration::from_secs(3_600));
    for _ in 0..2 {
        assert_eq!(find().await.expect_ok().lobby_id(), first);
    }
    assert_ne!(find().await.expect_ok().lobby_id(), first);
}

#[tokio::test]
async fn the_fullest_lobby_of_all_modes_and_regions_comes_first() {
    let stack = TestStack::start().await;
    let modes = json!({
        "five": { "regions": ["fra", "nyc"], "max_players": 5 },
        "nine": { "regions": ["fra"], "max_players": 9 },
    });
    let game = stack.make_game("fullest", modes, 99, 99).await;
    let find = |body: Value| game.find(&stack, body);
    let fill = |mode: &'static str, region: &'static str, seats: usize| {
        let find = &find;
        async move {
            let mut last: Option<Answer> = None;
            for _ in 0..seats {
                last = Some(find(json!({ "game_modes": [mode], "regions": [region] })).await.expect_ok());
            }
            last.unwrap().lobby_id()
        }
    };
    let fra = fill("five", "fra", 2).await;
    stack.clock.advance(Duration::from_millis(1));
    let (nyc, nine) = (fill("five", "nyc", 3).await, fill("nine", "fra", 6).await);
    let anywhere = json!({ "game_modes": ["nine", "five"], "regions": ["nyc", "fra"] });
    // Two free seats against three and three.
    assert_eq!(find(anywhere.clone()).await.expect_ok().lobby_id(), nyc);
    assert_eq!(find(anywhere.clone()).await.expect_ok().lobby_id(), nyc);
    // That one is full now. Three and three are free: the older of equals.
    assert_eq!(find(anywhere.clone()).await.expect_ok().lobby_id(), fra);
    let only_nine = json!({ "game_modes": ["nine"], "regions": ["nyc", "fra"] });
    assert_eq!(find(only_nine).await.expect_ok().lobby_id(), nine);
}

#[tokio::test]
async fn regions_are_a_filter() {
    let stack = TestStack::start().await;
    let fra = lobby(&stack, json!({ "game_modes": ["duel"], "regions": ["fra"] })).await;
    let nyc = lobby(&stack, json!({ "game_modes": ["duel"], "regions": ["nyc"] })).await;
    assert_ne!(fra, nyc);
    let answer = stack.find(json!({ "game_modes": ["duel"], "regions": ["nyc", "nyc"] })).await.expect_ok();
    assert_eq!(answer.lobby_id(), nyc);
    assert_eq!(answer.body["lobby"]["region"], json!({ "region_id": "nyc", "display_name": "New York" }));
}

#[tokio::test]
async fn a_lobby_must_have_every_queried_tag() {
    let stack = TestStack::start().await;
    let find = |tags: Value, create: bool| {
        stack.find(json!({ "game_modes": ["arena"], "tags": tags, "prevent_auto_create_lobby": !create }))
    };
    let tagged = find(json!({ "map": "dust", "rank": "gold" }), true).await.expect_ok().lobby_id();
    for (tags, fits) in [
        (json!({ "map": "dust", "rank": "gold" }), true),
        (json!({ "map": "dust" }), true),
        (json!({}), true),
        (json!(null), true),
        (json!({ "map": "dust", "rank": "gold", "more": "x" }), false),
        (json!({ "map": "Dust" }), false),
        (json!({ "mop": "dust" }), false),
    ] {
        let answer = find(tags.clone(), false).await;
        if fits {
            assert_eq!(answer.expect_ok().lobby_id(), tagged, "{tags}");
        } else {
            assert_eq!(answer.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "{tags}");
        }
    }
    let other = find(json!({ "map": "mill" }), true).await.expect_ok().lobby_id();
    assert_ne!(other, tagged);
    assert_eq!(find(json!({ "map": "mill" }), true).await.expect_ok().lobby_id(), other);
}

#[tokio::test]
async fn max_players_sizes_the_new_lobby_and_filters_nothing() {
    let stack = TestStack::start().await;
    let small = json!({ "game_modes": ["arena"], "max_players": 3 });
    let first = lobby(&stack, small.clone()).await;
    assert_eq!(lobby(&stack, json!({ "game_modes": ["arena"], "max_players": 9 })).await, first);
    assert_eq!(lobby(&stack, json!({ "game_modes": ["arena"] })).await, first);
    let second = lobby(&stack, small).await;
    assert_ne!(second, first, "it holds three");
}

#[tokio::test]
async fn prevented_creation_creates_nothing() {
    let stack = TestStack::start().await;
    let refused = stack.find(json!({ "game_modes": ["duel"], "prevent_auto_create_lobby": true })).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    assert!(stack.all_lobbies(&stack.demo().namespace_id).await.is_empty(), "I8");
}

#[tokio::test]
async fn exactly_lobby_count_max_lobbies_can_exist() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    for cap in [1, 2, 128] {
        let game = stack.make_game(&format!("cap-{cap}"), modes.clone(), cap, 1_000).await;
        for _ in 0..cap {
            let _found = game.find(&stack, json!({ "game_modes": ["solo"] })).await.expect_ok();
        }
        let refused = game.find(&stack, json!({ "game_modes": ["solo"] })).await;
        assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "I2 at {cap}");
        assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), cap as usize);
        assert_eq!(game.live_lobbies(&stack).await, cap);
    }
}

#[tokio::test]
async fn at_the_cap_an_unused_lobby_frees_capacity() {
    let stack = TestStack::start().await;
    let modes = json!({
        "solo": { "regions": ["fra"], "max_players": 1 },
        "other": { "regions": ["nyc"], "max_players": 1, "idle_seconds": 600 },
    });
    let game = stack.make_game("room", modes, 1, 9).await;
    let find = |mode: &'static str| game.find(&stack, json!({ "game_modes": [mode] }));
    let solo = find("solo").await.expect_ok().lobby_id();
    assert_eq!(find("other").await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));

    stack.clock.advance(Duration::from_secs(120));
    let other = find("other").await.expect_ok().lobby_id();
    assert_ne!(other, solo);
    assert_eq!(game.live_lobbies(&stack).await, 1);

    // No player connected, so its idle time never began.
    stack.clock.advance(Duration::from_secs(120));
    let _room = find("solo").await.expect_ok();
}

#[tokio::test]
async fn an_idle_time_keeps_no_lobby_whose_capacity_is_needed() {
    let stack = TestStack::start().await;
    let modes = json!({
        "fort": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 5, "idle_seconds": 3_600 },
        "duel": { "regions": ["fra"], "max_players": 1 },
    });
    let game = stack.make_game("forts", modes, 20, 99).await;
    let find = |mode: &'static str| game.find(&stack, json!({ "game_modes": [mode] }));

    // By reservations that lapse, since no player connected.
    for _ in 0..20 {
        find("fort").await.expect_ok();
    }
    assert_eq!(find("duel").await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
    stack.clock.advance(Duration::from_secs(5));
    let duel = find("duel").await.expect_ok();
    game.end_lobby(&stack, &duel.lobby_id()).await.expect_ok();

    // By players who came and left at once: the longest empty makes room.
    let mut forts = Vec::new();
    for lobby in stack.all_lobbies(game.namespace_id()).await {
        game.end_lobby(&stack, lobby.lobby_id.as_str()).await.expect_ok();
    }
    for _ in 0..20 {
        let fort = find("fort").await.expect_ok();
        game.connect(&stack, &fort).await.expect_ok();
        forts.push(fort);
    }
    stack.clock.advance(Duration::from_secs(2));
    assert_eq!(find("duel").await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "somebody is in each");
    for fort in forts[..9].iter().rev() {
        stack.clock.advance(Duration::from_secs(1));
        game.disconnect(&stack, fort).await.expect_ok();
    }
    stack.clock.advance(Duration::from_secs(1));
    assert_eq!(game.live_lobbies(&stack).await, 20, "while there is room they stay");
    for longest in forts[..9].iter().rev() {
        find("duel").await.expect_ok();
        assert_eq!(game.lobby(&stack, &longest.lobby_id()).await.stage, Stage::Ended);
        assert_eq!(game.live_lobbies(&stack).await, 20, "I2");
    }
    let full = find("duel").await;
    assert_eq!(full.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "players are in the others");
}

#[tokio::test]
async fn a_place_on_a_server_is_taken_with_the_lobby() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("places", modes, 99, 2).await;
    let find = || game.find(&stack, json!({ "game_modes": ["solo"] }));
    let _two = (find().await.expect_ok(), find().await.expect_ok());
    let refused = find().await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert!(refused.headers.contains_key("retry-after"));

    game.add_server(&stack, "second", "fra", 1, stack.clock.now() + Duration::from_secs(60)).await;
    let on_second = find().await.expect_ok();
    assert_eq!(on_second.body["ports"]["default"]["hostname"], "second.example");
    assert_eq!(find().await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
}

#[tokio::test]
async fn lobbies_go_to_the_fullest_server() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("packing", modes, 99, 4).await;
    let host = || async {
        let answer = game.find(&stack, json!({ "game_modes": ["solo"] })).await.expect_ok();
        answer.body["ports"]["default"]["hostname"].as_str().unwrap().to_owned()
    };
    assert_eq!(host().await, "fra.example");
    game.add_server(&stack, "roomy", "fra", 4, Timestamp::NEVER).await;
    stack.clock.advance(Duration::from_secs(1));
    let hosts = [host().await, host().await, host().await, host().await];
    assert_eq!(hosts, ["fra.example", "fra.example", "fra.example", "roomy.example"]);
}

#[tokio::test]
async fn lobbies_of_a_server_without_lease_are_not_found() {
    let stack = TestStack::start().await;
    let game = stack.make_game("lease", duel(), 9, 1).await;
    let lapse = stack.clock.now() + Duration::from_secs(30);
    let find = || game.find(&stack, json!({ "game_modes": ["duel"] }));
    // The fixed server's only place.
    let fixed = find().await.expect_ok().lobby_id();
    assert_eq!(find().await.expect_ok().lobby_id(), fixed);
    game.add_server(&stack, "leased", "fra", 1, lapse).await;
    let leased = find().await.expect_ok().lobby_id();
    assert_ne!(leased, fixed);
    stack.clock.advance(Duration::from_millis(29_999));
    assert_eq!(find().await.expect_ok().lobby_id(), leased);

    let again = stack.make_game("lease-2", duel(), 9, 1).await;
    again.add_server(&stack, "leased", "fra", 9, stack.clock.now() + Duration::from_secs(30)).await;
    let find = || again.find(&stack, json!({ "game_modes": ["duel"], "regions": ["fra"] }));
    let (_one, _two) = (find().await.expect_ok(), find().await.expect_ok());
    let on_leased = find().await.expect_ok().lobby_id();
    stack.clock.advance(Duration::from_secs(30));
    let refused = find().await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "I6: {on_leased} is dead");
}

#[tokio::test]
async fn a_switch_of_version_hides_older_lobbies_at_once() {
    let stack = TestStack::start().await;
    let body = json!({ "game_modes": ["arena"] });
    let older = lobby(&stack, body.clone()).await;
    let switch = async |version: &str| {
        let body = json!({ "version_id": version }).to_string();
        let path = stack.namespace_path("version");
        stack.call(http::Method::PUT, &path, Some(&stack.demo().tokens.cloud), body).await.expect_ok().body
    };
    let versions = &stack.demo().version_ids;
    assert_eq!(switch(versions[1].as_str()).await, json!({}));
    let newer = lobby(&stack, body.clone()).await;
    assert_ne!(newer, older);
    let _again = switch(versions[1].as_str()).await;
    let _back = switch(versions[0].as_str()).await;
    assert_eq!(lobby(&stack, body).await, older);
    let history = stack.version_history(&stack.demo().namespace_id).await;
    assert_eq!(history.len(), 3, "the first version and two changes; setting the same again writes none");
}

#[tokio::test]
async fn namespaces_never_see_each_others_lobbies() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let keys = stack.stack.keys();
    let kind = shared::models::token::CredentialKind::Public;
    let other = keys.issue_credential(
        kind,
        &shared::models::token::Credential::fresh(&demo.game_id, &demo.other_namespace_id, &stack.ambient()),
    );
    let here = lobby(&stack, json!({ "game_modes": ["arena"] })).await;
    let prevented = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
    assert_eq!(
        stack.find_with(&other, prevented).await.refusal(),
        (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"),
        "I11"
    );
    let there = stack.find_with(&other, json!({ "game_modes": ["arena"] })).await.expect_ok().lobby_id();
    assert_ne!(here, there);
}

/// As many open lobbies with one seat taken each, the oldest first: each has a tag of its own.
async fn open_lobbies(stack: &TestStack, game: &TestGame, count: usize) -> Vec<String> {
    let mut lobbies = Vec::new();
    for n in 0..count {
        let tagged = json!({ "game_modes": ["arena"], "tags": { "n": n.to_string() } });
        lobbies.push(game.find(stack, tagged).await.expect_ok().lobby_id());
        stack.clock.advance(Duration::from_millis(100));
    }
    lobbies
}

fn tagged_arena() -> Value {
    json!({ "arena": { "regions": ["fra"], "max_players": 10, "taggable": true } })
}

#[tokio::test]
async fn further_lobbies_of_a_burst_are_out_of_sight_while_their_positions_are_drawn() {
    let stack = TestStack::start().await;
    let game = stack.make_game("burst", duel(), 9, 9).await;
    let find = json!({ "game_modes": ["duel"] });
    let mut found = Vec::new();
    for _ in 0..3 {
        let answer = stack.instance().find(&game.public, &find).await.unwrap();
        found.push(answer.lobby.lobby_id.to_string());
    }
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0], found[2]);
    let (pool, now) = (game.pool("duel", "fra"), stack.clock.now());
    let seen_after = |millis| stack.store().candidates(&pool, 1, now + Duration::from_millis(millis), 9);
    assert_eq!(seen_after(299).await.unwrap(), []);
    let in_sight = seen_after(300).await.unwrap();
    assert_eq!(
        in_sight.iter().map(|other| other.lobby_id.to_string()).collect::<Vec<_>>(),
        [found[2].clone()]
    );
    let answer = stack.instance().find(&game.public, &find).await.unwrap();
    assert_eq!(
        answer.lobby.lobby_id.to_string(),
        found[2],
        "I9: who comes meanwhile draws the next position"
    );
}

#[tokio::test]
async fn among_sixteen_candidates_the_fullest_is_exact() {
    let stack = TestStack::start().await;
    let game = stack.make_game("sixteen", tagged_arena(), 99, 99).await;
    let lobbies = open_lobbies(&stack, &game, 16).await;
    let _second_seat =
        game.find(&stack, json!({ "game_modes": ["arena"], "tags": { "n": "11" } })).await.expect_ok();
    // Not under load, where any will do.
    for _ in 0..8 {
        stack.clock.advance(Duration::from_secs(1));
        assert_eq!(
            game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok().lobby_id(),
            lobbies[11]
        );
    }
    stack.clock.advance(Duration::from_secs(1));
    let next = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok().lobby_id();
    assert_eq!(next, lobbies[0], "the oldest of equals");
}

#[tokio::test]
async fn dead_lobbies_in_front_do_not_hide_a_living_one() {
    let stack = TestStack::start().await;
    let game = stack.make_game("behind", tagged_arena(), 99, 1).await;
    let lease = Duration::from_secs(60);
    game.add_server(&stack, "leased", "fra", 40, stack.clock.now() + lease).await;
    let lobbies = open_lobbies(&stack, &game, 41).await;
    stack.clock.advance(lease);
    // One of them stands on the fixed server, which has a single place: it is the only one that can be
    // entered.
    let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert_eq!(found.body["ports"]["default"]["hostname"], "fra.example", "I6");
    assert!(lobbies.contains(&found.lobby_id()), "I9: it was there already");
}

#[tokio::test]
async fn a_find_succeeds_though_the_index_takes_no_write_that_hides_a_dead_lobby() {
    let stack = TestStack::start().await;
    let game = stack.make_game("hints", duel(), 9, 0).await;
    let lease = Duration::from_secs(60);
    game.add_server(&stack, "silent", "fra", 9, stack.clock.now() + lease).await;
    game.find(&stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    stack.clock.advance(lease);
    game.add_server(&stack, "alive", "fra", 9, stack.clock.now() + lease).await;
    let hides = |call: &Call| String::from_utf8_lossy(&call.body).contains("SET #joinable_from = :never");
    let instance = stack.instance_over(Losing::calls(stack.stack.store_link(), hides));
    let found = instance.find(&game.public, &json!({ "game_modes": ["duel"] })).await;
    assert!(found.is_ok(), "{found:?}");
}

#[tokio::test]
async fn lobbies_of_a_silent_server_are_passed_over_together() {
    const DEAD: usize = 300;
    let stack = TestStack::start().await;
    let game = stack.make_game("silent", tagged_arena(), 999, 0).await;
    let lease = Duration::from_secs(60);
    game.add_server(&stack, "leased", "fra", 400, stack.clock.now() + lease).await;
    let _dead = open_lobbies(&stack, &game, DEAD).await;
    stack.clock.advance(lease);
    game.add_server(&stack, "living", "fra", 9, Timestamp::NEVER).await;
    let living = open_lobbies(&stack, &game, 1).await;
    let instance = stack.instance();
    let mut calls = Vec::new();
    for _ in 0..9 {
        let before = instance.usage().calls;
        let found = instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
        assert_eq!(found.lobby.lobby_id.to_string(), living[0], "I9: it was there already");
        calls.push(instance.usage().calls - before);
        stack.clock.advance(Duration::from_secs(1));
    }
    // Each puts some of them out of sight, sixteen at a time, until none is left; the first also reads the
    // settings.
    assert!(calls.iter().all(|calls| *calls <= 64), "I14: {calls:?}");
    assert_eq!(calls.last(), Some(&2), "I14: {calls:?}");
}

#[tokio::test]
async fn silent_servers_of_one_lobby_each_are_not_read() {
    const DEAD: u64 = 60;
    let stack = TestStack::start().await;
    let game = stack.make_game("singles", tagged_arena(), 999, 0).await;
    let lease = Duration::from_secs(60);
    for n in 0..DEAD {
        game.add_server(&stack, &format!("single-{n}"), "fra", 1, stack.clock.now() + lease).await;
    }
    let _dead = open_lobbies(&stack, &game, usize::try_from(DEAD).unwrap()).await;
    stack.clock.advance(lease);
    game.add_server(&stack, "living", "fra", 9, Timestamp::NEVER).await;
    let living = open_lobbies(&stack, &game, 1).await;
    let instance = stack.instance();
    let found = instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    assert_eq!(found.lobby.lobby_id.to_string(), living[0], "I9: it was there already");
    // Settings, two looks, five waves, a seat; and one write to put each of them out of sight.
    assert!(instance.usage().calls <= 2 + 2 + 6 + 1 + DEAD, "I14: {:?}", instance.usage());
}

#[tokio::test]
async fn room_comes_from_lobbies_of_dead_servers_and_of_older_versions() {
    let stack = TestStack::start().await;
    let modes = json!({
        "solo": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 },
        "other": { "regions": ["nyc"], "max_players": 1 },
    });
    let game = stack.make_game("dead-room", modes.clone(), 2, 1).await;
    let find = |mode: &'static str| game.find(&stack, json!({ "game_modes": [mode] }));
    game.add_server(&stack, "leased", "fra", 1, stack.clock.now() + Duration::from_secs(60)).await;
    let solos = [find("solo").await.expect_ok(), find("solo").await.expect_ok()];
    let on_fixed = |seat: &&Answer| seat.body["ports"]["default"]["hostname"] == "fra.example";
    let fixed = solos.iter().find(on_fixed).unwrap();
    assert_eq!(find("other").await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
    stack.clock.advance(Duration::from_secs(60));
    // A reservation holds a seat there still, but its server is gone.
    let _room = find("other").await.expect_ok();
    stack.clock.advance(Duration::from_secs(2));
    assert_eq!(find("solo").await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));

    // Lobbies of a version that no longer runs make room when they are empty.
    let config = serde_json::from_value(json!({ "game_modes": modes })).unwrap();
    let version =
        provision::add_version(stack.store(), &stack.ambient(), game.game_id(), "2".to_owned(), config)
            .await
            .unwrap();
    let right = GameRight::of_operator(game.game_id().clone());
    let right = right.on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    stack.store().set_version(&right, &version.version_id, stack.clock.now()).await.unwrap();
    stack.clock.advance(Duration::from_secs(600));
    let new = find("other").await.expect_ok().lobby_id();
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let live: Vec<_> = lobbies.iter().filter(|lobby| lobby.stage != Stage::Ended).collect();
    // The one in New York made room at the cap and gave its place; the other one need not go.
    let live: std::collections::BTreeSet<_> = live.iter().map(|lobby| lobby.lobby_id.as_str()).collect();
    assert_eq!(live, [new.as_str(), fixed.lobby_id().as_str()].into());
    assert_eq!(game.live_lobbies(&stack).await, 2);
}

/// A network on which each query takes a second.
#[derive(Debug)]
struct Slow {
    link: Arc<dyn Link>,
    clock: TestClock,
    queries: AtomicUsize,
}

impl Link for Slow {
    fn carry(&self, call: Call) -> Carried {
        if call.operation == "Query" {
            self.queries.fetch_add(1, Ordering::Relaxed);
            self.clock.advance(Duration::from_secs(1));
        }
        self.link.carry(call)
    }
}

#[tokio::test]
async fn a_find_in_very_many_pools_queries_some_at_a_time_and_ends_at_its_deadline() {
    let stack = TestStack::start().await;
    let modes: Vec<String> = (0..32).map(|mode| format!("mode-{mode}")).collect();
    let config = modes.iter().map(|mode| (mode.clone(), json!({ "regions": ["fra", "nyc"] }))).collect();
    let game = stack.make_game("many", Value::Object(config), 99, 99).await;
    let link = Arc::clone(stack.stack.store_link());
    let slow = Arc::new(Slow { link, clock: stack.clock.clone(), queries: AtomicUsize::default() });
    let client = patient_client_over(Arc::clone(&slow) as Arc<dyn Link>);
    let instance = Instance::over(client, stack.stack.keys(), &stack.ambient());
    let refused =
        instance.find(&game.public, &json!({ "game_modes": modes, "regions": ["fra", "nyc"] })).await;
    assert_eq!(refused.unwrap_err().status_and_code().1, "MATCHMAKER_CONTENTION", "I3");
    assert_eq!(slow.queries.load(Ordering::Relaxed), 16, "of 64");
}

#[tokio::test]
async fn a_lobby_whose_item_takes_no_more_writes_is_left_aside_and_the_next_one_is_counted() {
    let stack = TestStack::start().await;
    let modes = json!({ "royale": { "regions": ["fra"], "max_players": 256 } });
    let game = stack.make_game("royale", modes, 999, 999).await;
    let instance = stack.instance();
    let mut lobbies = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..180 {
        let found = instance.find(&game.public, &json!({ "game_modes": ["royale"] })).await.unwrap();
        *lobbies.entry(found.lobby.lobby_id.to_string()).or_default() += 1;
    }
    // The 140th seat makes it 140 writes of five units each within a second.
    let mut seats: Vec<u32> = lobbies.into_values().collect();
    seats.sort_unstable();
    assert_eq!((seats, instance.race_creates()), (vec![40, 140], 1), "I9");
    stack.clock.advance(Duration::from_secs(1));
    let later = stack.instance().find(&game.public, &json!({ "game_modes": ["royale"] })).await.unwrap();
    let lobby = game.lobby(&stack, later.lobby.lobby_id.as_str()).await;
    assert_eq!(lobby.taken, 141, "a second later it is the fullest");
}

/// Where a find that excludes these lobbies got its seat.
async fn find_elsewhere(instance: &Instance, game: &TestGame, excluded: &[&str]) -> Option<String> {
    let body = json!({ "game_modes": ["arena"], "exclude_lobby_ids": excluded });
    Some(instance.find(&game.public, &body).await.ok()?.lobby.lobby_id.to_string())
}

#[tokio::test]
async fn a_find_that_excludes_a_lobby_gets_another_however_it_looks() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 8, "taggable": true });
    let game = stack.make_game("excluded", json!({ "arena": mode }), 9, 9).await;
    let find = json!({ "game_modes": ["arena"] });
    let fullest = game.find(&stack, find.clone()).await.expect_ok().lobby_id();
    // Its burst is under way, and has a position for the next find.
    let quiet = stack.instance();
    let other = find_elsewhere(&quiet, &game, &[&fullest]).await.unwrap();
    assert_ne!(other, fullest);
    // Both are in sight; in any case, and with blanks around.
    stack.clock.advance(Duration::from_secs(5));
    let typed = format!(" {} ", fullest.to_uppercase());
    for _ in 0..2 {
        assert_eq!(find_elsewhere(&quiet, &game, &[&typed, "no lobby", ""]).await.as_ref(), Some(&other));
    }
    assert_eq!(find_elsewhere(&quiet, &game, &[&other]).await.as_ref(), Some(&fullest));
    // From memory, and ahead: this instance makes many finds in a second.
    let loaded = stack.instance();
    for _ in 0..8 {
        assert_eq!(find_elsewhere(&loaded, &game, &[&other]).await.as_ref(), Some(&fullest));
        if game.lobby(&stack, &fullest).await.taken == 8 {
            break;
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        seen.insert(find_elsewhere(&loaded, &game, &[&fullest]).await.unwrap());
    }
    assert!(!seen.contains(&fullest), "{seen:?}");
    // Without creation it is refused rather than seated there.
    let all: Vec<_> = stack.all_lobbies(game.namespace_id()).await;
    let all: Vec<_> = all.iter().map(|lobby| lobby.lobby_id.to_string()).collect();
    let none =
        json!({ "game_modes": ["arena"], "exclude_lobby_ids": all, "prevent_auto_create_lobby": true });
    let refused = stack.instance().find(&game.public, &none).await.unwrap_err();
    assert_eq!(refused.status_and_code().1, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
}

#[tokio::test]
async fn a_find_that_excludes_a_tagged_lobby_gets_another_and_explains_it() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 8, "taggable": true });
    let game = stack.make_game("excluded-tagged", json!({ "arena": mode }), 9, 9).await;
    let find = json!({ "game_modes": ["arena"], "tags": { "map": "dust" } });
    let first = game.find(&stack, find.clone()).await.expect_ok().lobby_id();
    let mut elsewhere = find.clone();
    elsewhere["exclude_lobby_ids"] = json!([first]);
    assert_ne!(game.find(&stack, elsewhere.clone()).await.expect_ok().lobby_id(), first);
    elsewhere["exclude_lobby_ids"] = json!(vec![first.clone(); 9]);
    let refused = game.find(&stack, elsewhere).await;
    assert_eq!(refused.refusal(), (400, "API_BAD_BODY"));
    assert!(refused.body["message"].as_str().unwrap().contains("exclude_lobby_ids"), "{}", refused.body);
}

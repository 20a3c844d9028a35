//! The operations' calls of DynamoDB, counted over isolated function instances.

#![expect(clippy::unwrap_used, reason = "this is test code: what cannot go on panics")]

use std::{sync::Arc, time::Duration};

use harness::{
    TestGame, TestStack,
    instance::{Instance, event, request},
    lobby_host::LobbyHost,
};
use muster_local::{functions::Functions, gateway::Handler, stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::{
    base::{ambient::Timestamp, usage::Usage},
    cloud::provision::add_version,
    models::{errors::Error, version::VersionConfig},
    outside::endpoints::Outside,
    request::Request,
    store::meter::Meter,
};

/// What one request costs.
async fn cost_of(instance: &Instance, request: &Request) -> (Usage, Result<String, Error>) {
    let before = instance.usage();
    let answer = instance.call(request).await.map(|answer| answer.lobby.lobby_id.to_string());
    (instance.usage() - before, answer)
}

fn usage(calls: u64, read_units: f64, write_units: f64) -> Usage {
    Usage { calls, read_units, write_units }
}

#[tokio::test]
async fn a_warm_quiet_find_is_one_look_and_one_write() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 4 } });
    let game = stack.make_game("quiet", modes, 99, 99).await;
    let instance = stack.instance();
    instance.warm_up(&game.public, &game.pool("arena", "fra")).await;
    let authorization = format!("Bearer {}", game.public);
    let find = request(&[("authorization", &authorization)], &json!({ "game_modes": ["arena"] }));
    let mut costs = Vec::new();
    for _ in 0..4 {
        stack.clock.advance(Duration::from_secs(3));
        let (cost, answer) = cost_of(&instance, &find).await;
        let _lobby = answer.unwrap();
        costs.push(cost);
    }
    // The first time, the head takes a write of its own, and a block of the cap is allotted.
    let create = usage(3, 0.5, 9.0);
    let join = usage(2, 0.5, 1.0);
    // The last seat also moves the lobby out of sight: two write units of the index.
    let fill = usage(2, 0.5, 3.0);
    assert_eq!(costs, [create, join, join, fill]);
}

#[tokio::test]
async fn an_instance_that_does_not_know_the_lobby_hides_it_by_a_second_write() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("strangers", modes, 99, 99).await;
    let find = request(
        &[("authorization", &format!("Bearer {}", game.public))],
        &json!({ "game_modes": ["arena"] }),
    );
    let (first, second) = (stack.instance(), stack.instance());
    second.warm_up(&game.public, &game.pool("arena", "fra")).await;
    let lobby = first.call(&find).await.unwrap().lobby.lobby_id;
    let (cost, answer) = cost_of(&second, &find).await;
    assert_eq!((cost, answer.unwrap()), (usage(3, 0.5, 4.0), lobby.to_string()));
    let candidates =
        stack.store().candidates(&game.pool("arena", "fra"), 1, stack.clock.now(), 9).await.unwrap();
    assert!(candidates.is_empty());
}

#[tokio::test]
async fn the_last_seat_of_a_lobby_that_was_read_is_taken_and_hidden_by_one_write() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2, "taggable": true } });
    let game = stack.make_game("read", modes, 99, 99).await;
    let authorization = format!("Bearer {}", game.public);
    let stranger = stack.instance();
    stranger.warm_up(&game.public, &game.pool("arena", "fra")).await;
    for tag in ["one", "another"] {
        let body = json!({ "game_modes": ["arena"], "tags": { "n": tag } });
        let _lobby = game.find(&stack, body).await.expect_ok();
    }
    let find = request(&[("authorization", &authorization)], &json!({ "game_modes": ["arena"] }));
    let (cost, answer) = cost_of(&stranger, &find).await;
    let lobby = answer.unwrap();
    // A look, two lobbies read, and the write with two units for each index: the lobby has tags.
    assert_eq!(cost, usage(3, 1.5, 5.0));
    let candidates =
        stack.store().candidates(&game.pool("arena", "fra"), 1, stack.clock.now(), 9).await.unwrap();
    let in_sight: Vec<_> = candidates.iter().map(|candidate| candidate.lobby_id.as_str()).collect();
    assert!(in_sight.len() == 1 && in_sight[0] != lobby);
}

#[tokio::test]
async fn a_find_under_load_is_one_write() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 100 } });
    let game = stack.make_game("load", modes, 99, 99).await;
    let instance = stack.instance();
    let authorization = format!("Bearer {}", game.public);
    let find = request(&[("authorization", &authorization)], &json!({ "game_modes": ["arena"] }));
    for _ in 0..40 {
        let _warm = instance.call(&find).await.unwrap();
    }
    let (cost, answer) = cost_of(&instance, &find).await;
    let lobby = answer.unwrap();
    assert_eq!(cost.calls, 1);
    // A second later nothing that was learnt counts any more.
    stack.clock.advance(Duration::from_secs(1));
    let (cost, answer) = cost_of(&instance, &find).await;
    assert_eq!((cost.calls, answer.unwrap()), (2, lobby));
}

#[tokio::test]
async fn a_find_under_load_is_one_write_whatever_it_asks_for() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra", "nyc"], "max_players": 100, "taggable": true });
    let game = stack.make_game("asks", json!({ "arena": mode, "duel": mode }), 99, 99).await;
    let authorization = format!("Bearer {}", game.public);
    for body in [
        json!({ "game_modes": ["arena", "duel"], "regions": ["fra"] }),
        json!({ "game_modes": ["arena"], "regions": ["nyc", "fra"] }),
        json!({ "game_modes": ["arena", "duel"], "regions": ["nyc", "fra"], "tags": { "map": "dust" } }),
    ] {
        let instance = stack.instance();
        let find = request(&[("authorization", &authorization)], &body);
        let (_, first) = cost_of(&instance, &find).await;
        for _ in 0..5 {
            let _warm = instance.call(&find).await.unwrap();
        }
        let (cost, answer) = cost_of(&instance, &find).await;
        assert_eq!((cost, answer.unwrap()), (usage(1, 0.0, 1.0), first.unwrap()), "{body}");
    }
}

#[tokio::test]
async fn a_code_of_friends_is_found_by_one_look_however_many_other_codes_there_are() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 10, "taggable": true });
    let game = stack.make_game("codes", json!({ "arena": mode }), 999, 999).await;
    let with = |code: u32| json!({ "game_modes": ["arena"], "tags": { "code": code.to_string() } });
    let codes = 40;
    for code in 0..codes {
        let _lobby = game.find(&stack, with(code)).await.expect_ok();
        stack.clock.advance(Duration::from_secs(1));
    }
    let friend = stack.instance();
    let authorization = format!("Bearer {}", game.public);
    let find = |code| request(&[("authorization", &authorization)], &with(code));
    let _warm = friend.call(&find(0)).await.unwrap();
    stack.clock.advance(Duration::from_secs(1));
    let find = find(codes / 2);
    let (cost, answer) = cost_of(&friend, &find).await;
    assert_eq!(cost, usage(2, 0.5, 1.0), "{answer:?}");
}

#[tokio::test]
async fn a_friend_who_is_sooner_than_the_index_draws_no_position() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 12, "taggable": true } });
    let game = stack.make_game("soon", modes, 99, 99).await;
    let authorization = format!("Bearer {}", game.public);
    // A look at the tags and one at all lobbies, the head, and if the lobby's find is not known to be alone
    // a position; the seat.
    for (age, expected) in [(19, usage(5, 1.0, 3.0)), (20, usage(4, 1.0, 2.0))] {
        let body = json!({ "game_modes": ["arena"], "tags": { "code": age.to_string() } });
        let find = request(&[("authorization", &authorization)], &body);
        let (first, friend) = (stack.instance(), stack.instance());
        friend.warm_up(&game.public, &game.pool("arena", "fra")).await;
        let lobby_id = first.call(&find).await.unwrap().lobby.lobby_id.to_string();
        stack.show_from(&lobby_id, Timestamp::NEVER).await;
        stack.clock.advance(Duration::from_millis(age));
        let (cost, answer) = cost_of(&friend, &find).await;
        assert_eq!((cost, answer.unwrap()), (expected, lobby_id), "{age} ms");
    }
}

#[tokio::test]
async fn a_find_without_token_and_origin_calls_nothing() {
    let stack = TestStack::start().await;
    let instance = stack.instance();
    let (cost, answer) = cost_of(&instance, &request(&[], &json!({ "game_modes": ["duel"] }))).await;
    assert!(matches!(answer, Err(Error::Unauthorized)), "{answer:?}");
    assert_eq!(cost, Usage::default());
}

#[tokio::test]
async fn an_unknown_host_is_read_once_in_thirty_seconds() {
    let stack = TestStack::start().await;
    let instance = stack.instance();
    let find = request(&[("origin", "https://unknown.example")], &json!({ "game_modes": ["duel"] }));
    for (passed, reads) in [(0, 1), (0, 0), (29, 0), (1, 1)] {
        stack.clock.advance(Duration::from_secs(passed));
        let (cost, answer) = cost_of(&instance, &find).await;
        assert!(matches!(answer, Err(Error::Unauthorized)), "{answer:?}");
        assert_eq!(cost.calls, reads, "after {passed} s more");
    }
}

#[tokio::test]
async fn a_flood_of_invented_hosts_costs_one_read_each_and_never_more() {
    const HOSTS: usize = 3_000;
    let stack = TestStack::start().await;
    let instance = stack.instance();
    for host in 0..HOSTS {
        let origin = format!("https://{host}.example");
        let find = request(&[("origin", &origin)], &json!({ "game_modes": ["duel"] }));
        let (cost, answer) = cost_of(&instance, &find).await;
        assert!(matches!(answer, Err(Error::Unauthorized)), "{answer:?}");
        assert_eq!(cost, usage(1, 1.0, 0.0));
    }
    // Entries for unknown hosts displace none of a namespace.
    let demo = stack.demo();
    let authorization = format!("Bearer {}", demo.tokens.public);
    let find = request(&[("authorization", &authorization)], &json!({ "game_modes": ["arena"] }));
    let _warm = instance.call(&find).await.unwrap();
    let flood = request(&[("origin", "https://one-more.example")], &json!({ "game_modes": ["duel"] }));
    let _refused = cost_of(&instance, &flood).await;
    let (cost, answer) = cost_of(&instance, &find).await;
    let _lobby = answer.unwrap();
    assert_eq!(cost.calls, 2);
}

#[tokio::test]
async fn settings_are_at_most_thirty_seconds_old() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let instance = stack.instance();
    let authorization = format!("Bearer {}", demo.tokens.public);
    let find = request(&[("authorization", &authorization)], &json!({ "game_modes": ["arena"] }));
    let older = instance.call(&find).await.unwrap().lobby.lobby_id;
    let body = json!({ "version_id": demo.version_ids[1] }).to_string();
    let path = stack.namespace_path("version");
    let _switched = stack.call(http::Method::PUT, &path, Some(&demo.tokens.cloud), body).await.expect_ok();
    stack.clock.advance(Duration::from_millis(29_999));
    assert_eq!(instance.call(&find).await.unwrap().lobby.lobby_id, older);
    stack.clock.advance(Duration::from_millis(1));
    assert_ne!(instance.call(&find).await.unwrap().lobby.lobby_id, older);
}

/// Versions of 50 KB that a game has beside the one that it runs.
const LARGE_VERSIONS: usize = 60;

/// A configuration that is stored in about 50 KB.
fn large_config() -> VersionConfig {
    let url = format!("https://verify.example/{}", "x".repeat(400));
    let action = json!({ "enabled": true, "verification": { "url": url } });
    let actions = json!({ "find": action, "join": action, "create": action });
    let mode = json!({ "regions": ["fra"], "actions": actions });
    let modes = (0..32).map(|n| (format!("mode-{n}"), mode.clone())).collect();
    serde_json::from_value(json!({ "game_modes": Value::Object(modes) })).unwrap()
}

async fn game_of_large_versions(stack: &TestStack) -> TestGame {
    let game = stack.make_game("large", json!({ "arena": { "regions": ["fra"] } }), 9, 9).await;
    for n in 0..LARGE_VERSIONS {
        let (name, config) = (n.to_string(), large_config());
        let _version =
            add_version(stack.store(), &stack.ambient(), game.game_id(), name, config).await.unwrap();
    }
    game
}

/// The function `name` on the tables of `stack`, and what counts its calls.
fn counted(stack: &TestStack, name: &str) -> (Handler, Meter) {
    let meter = Meter::on();
    let store = stack.store().metered(meter.clone());
    let declared = Template::parse(TEMPLATE).unwrap().functions;
    let keys = Arc::clone(stack.stack.keys());
    let functions = Functions::new(store, declared, keys, stack.ambient(), Outside::default());
    (functions.instance(&format!("functions/{name}")).unwrap(), meter)
}

#[tokio::test]
async fn versions_are_listed_at_the_same_cost_however_much_they_configure() {
    let stack = TestStack::start().await;
    let game = game_of_large_versions(&stack).await;
    let whole = Meter::on();
    let stored = stack.store().metered(whole.clone()).versions_as_stored(game.game_id()).await.unwrap();
    assert_eq!(stored.len(), LARGE_VERSIONS + 1);
    assert_eq!(whole.usage(), usage(3, 738.0, 0.0));

    let (get_game, meter) = counted(&stack, "get-game");
    let bearer = format!("Bearer {}", game.created.cloud_token.reveal());
    let path = [("game_id", game.game_id().as_str())];
    let response = get_game(event(&[("authorization", &bearer)], &json!({}), &path)).await;
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(answer["game"]["versions"].as_array().unwrap().len(), LARGE_VERSIONS + 1, "{answer}");
    // The token, the game, its namespaces, its versions; the first three are one unit each.
    assert_eq!(meter.usage(), usage(4, 10.0, 0.0));
}

#[tokio::test]
async fn a_registration_of_an_unknown_mode_reads_no_version_whole() {
    let stack = TestStack::start().await;
    let game = game_of_large_versions(&stack).await;
    let (register, meter) = counted(&stack, "register-server");
    let bearer = format!("Bearer {}", game.server);
    let register_for = async |mode: &str| {
        let body = json!({ "server_id": "one", "region_id": "fra", "capacity": 1, "game_modes": [mode],
            "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } } });
        let before = meter.usage();
        let status = register(event(&[("authorization", &bearer)], &body, &[])).await.status().as_u16();
        (status, meter.usage() - before)
    };
    let (status, _warm) = register_for("arena").await;
    assert_eq!(status, 200);
    // A mode of a version that the namespace does not run.
    let (status, cost) = register_for("mode-31").await;
    assert!(status == 200 && cost.read_units <= 15.0, "{status}: {cost:?}");
    let (status, cost) = register_for("no-version-has-it").await;
    assert_eq!((status, cost), (400, usage(1, 7.0, 0.0)));
}

#[tokio::test]
async fn operations_with_a_lobby_token_read_settings_once_in_thirty_seconds() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("hosted", json!({ "arena": { "regions": ["fra"], "max_players": 9 } }), 9, 9).await;
    let meter = Meter::on();
    let store = stack.store().metered(meter.clone());
    let host = LobbyHost::new(store, stack.stack.keys(), &stack.ambient(), game.game_id().clone());
    for (passed, calls) in [(0, 3), (1, 1), (28, 1), (1, 2)] {
        stack.clock.advance(Duration::from_secs(passed));
        let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
        let before = meter.usage();
        let token = found.body["player"]["token"].as_str().unwrap();
        host.connect(&stack.seat(&found), token).await.unwrap();
        assert_eq!((meter.usage() - before).calls, calls, "after {passed} s more");
    }
}

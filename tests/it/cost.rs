//! What a find asks of DynamoDB, counted over isolated function instances.

use std::time::Duration;

use muster_tests::{
    TestStack,
    instance::{Instance, request},
};
use serde_json::json;
use shared::{errors::Error, http::Request, store::meter::Usage};

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
    // The first time the head is asked by a write of its own, and a block of the cap is allotted.
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
        stack.store().candidates(&game.pool("arena", "fra"), stack.clock.now(), 9).await.unwrap().0;
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
        stack.store().candidates(&game.pool("arena", "fra"), stack.clock.now(), 9).await.unwrap().0;
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
async fn a_find_without_token_and_origin_asks_nothing() {
    let stack = TestStack::start().await;
    let instance = stack.instance();
    let (cost, answer) = cost_of(&instance, &request(&[], &json!({ "game_modes": ["duel"] }))).await;
    assert!(matches!(answer, Err(Error::Unauthorized)), "{answer:?}");
    assert_eq!(cost, Usage::default());
}

#[tokio::test]
async fn an_unknown_host_is_asked_for_once_in_thirty_seconds() {
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
    // What is remembered of hosts that are nobody's crowds out nothing of a namespace.
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

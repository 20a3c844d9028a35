//! The cap as it is allotted to game servers: exact at the limit, whichever servers hold the rest of it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use harness::{Answer, TestGame, TestStack, game_server::registration};
use http::Method;
use muster_local::emulator::{
    in_process::WireAnswer,
    link::{Call, Carried, Link},
};
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    models::{errors::Error, server::PlacementPool},
};

const AT_CAP: (u16, &str) = (400, "MATCHMAKER_TOO_MANY_LOBBIES");

/// A game of lobbies for one player, with a server in each of two regions.
async fn solos(stack: &TestStack, name: &str, lobby_count_max: u32) -> TestGame {
    let modes = json!({ "solo": { "regions": ["fra", "nyc"], "max_players": 1, "idle_seconds": 3_600 } });
    stack.make_game(name, modes, lobby_count_max, 1_000).await
}

async fn find_in(stack: &TestStack, game: &TestGame, region: &str) -> Answer {
    game.find(stack, json!({ "game_modes": ["solo"], "regions": [region] })).await
}

/// Another cap, as `update-matchmaker-config` sets it.
async fn set_cap(stack: &TestStack, game: &TestGame, lobby_count_max: u32) {
    let path = format!("/cloud/games/{}/namespaces/{}/mm-config", game.game_id(), game.namespace_id());
    let body = json!({ "lobby_count_max": lobby_count_max, "max_players": 1_000_000 }).to_string();
    let token = game.created.cloud_token.reveal();
    let _set = stack.call(Method::POST, &path, Some(token), body).await.expect_ok();
    // Settings are this old at most.
    stack.clock.advance(Duration::from_secs(1));
}

#[tokio::test]
async fn what_one_server_has_left_of_the_cap_serves_another_at_the_limit() {
    let stack = TestStack::start().await;
    for cap in [1, 7, 300] {
        let game = solos(&stack, &format!("moved-{cap}"), cap).await;
        let mut found = Vec::new();
        for _ in 0..cap {
            found.push(find_in(&stack, &game, "fra").await.expect_ok());
        }
        assert_eq!(find_in(&stack, &game, "nyc").await.refusal(), AT_CAP, "{cap}");
        // All that ends in one region can be had in the other, to the last.
        let ended = found.len().div_ceil(2);
        for found in &found[..ended] {
            game.end_lobby(&stack, &found.lobby_id()).await.expect_ok();
        }
        assert_eq!(game.game_server(&stack, "fra").await.allotted, cap, "the allotment stays");
        stack.clock.advance(Duration::from_secs(1));
        for n in 0..ended {
            let found = find_in(&stack, &game, "nyc").await;
            assert_eq!(found.status, 200, "{n} of {ended}: {}", found.body);
        }
        assert_eq!(game.live_lobbies(&stack).await, cap, "I2");
        for region in ["fra", "nyc"] {
            assert_eq!(find_in(&stack, &game, region).await.refusal(), AT_CAP, "I2 at {cap}");
        }
    }
}

/// A network whose index shows no server with a place, since it lags.
#[derive(Debug)]
struct NoPlaceInSight(Arc<dyn Link>);

impl Link for NoPlaceInSight {
    fn carry(&self, call: Call) -> Carried {
        let request: Value = serde_json::from_slice(&call.body).unwrap();
        let time = &request["ExpressionAttributeValues"][":time"]["N"];
        if request["IndexName"] == "placements" && *time != Timestamp::NEVER.to_string() {
            let body = json!({ "Count": 0, "ScannedCount": 0, "Items": [] }).to_string();
            return Box::pin(async { Ok(WireAnswer { status: 200, body }) });
        }
        self.0.carry(call)
    }
}

#[tokio::test]
async fn what_a_server_has_left_of_the_cap_is_found_before_the_index_shows_it() {
    let stack = TestStack::start().await;
    let game = solos(&stack, "hidden", 3).await;
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(find_in(&stack, &game, "fra").await.expect_ok());
    }
    game.end_lobby(&stack, &found[0].lobby_id()).await.expect_ok();
    let instance = stack.instance_over(NoPlaceInSight(Arc::clone(stack.stack.store_link())));
    let find = json!({ "game_modes": ["solo"], "regions": ["fra"] });
    instance.find(&game.public, &find).await.unwrap();
    assert_eq!(game.live_lobbies(&stack).await, 3, "I2");
    let refusal = instance.find(&game.public, &find).await.unwrap_err();
    assert!(matches!(refusal, Error::TooManyLobbies), "I2: {refusal:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_of_two_regions_at_once_fill_the_cap_and_no_more() {
    let stack = TestStack::start().await;
    let game = solos(&stack, "both", 10).await;
    let finds = (0..40).map(|n| {
        let region = if n % 2 == 0 { "fra" } else { "nyc" };
        find_in(&stack, &game, region)
    });
    let answers = join_all(finds).await;
    let lobbies: BTreeSet<_> =
        answers.iter().filter(|answer| answer.status == 200).map(Answer::lobby_id).collect();
    assert_eq!(lobbies.len(), 10, "I2");
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.refusal() == AT_CAP));
    assert_eq!(game.live_lobbies(&stack).await, 10);
}

#[tokio::test]
async fn after_the_cap_was_lowered_nothing_is_created_from_what_was_allotted_before() {
    let stack = TestStack::start().await;
    let game = solos(&stack, "lowered", 1_000).await;
    let mut found = Vec::new();
    for _ in 0..20 {
        found.push(find_in(&stack, &game, "fra").await.expect_ok());
    }
    let before = game.game_server(&stack, "fra").await;
    assert!(before.allotted > 20, "a block was allotted: {before:?}");
    set_cap(&stack, &game, 20).await;
    assert_eq!(find_in(&stack, &game, "fra").await.refusal(), AT_CAP, "I2");
    assert_eq!(game.live_lobbies(&stack).await, 20);

    // Lowering ends nothing; what ends is not replaced until there are fewer than the cap.
    set_cap(&stack, &game, 15).await;
    for found in &found[..5] {
        game.end_lobby(&stack, &found.lobby_id()).await.expect_ok();
        assert_eq!(find_in(&stack, &game, "fra").await.refusal(), AT_CAP, "I2");
    }
    game.end_lobby(&stack, &found[5].lobby_id()).await.expect_ok();
    stack.clock.advance(Duration::from_secs(1));
    let _found = find_in(&stack, &game, "fra").await.expect_ok();
    assert_eq!(find_in(&stack, &game, "nyc").await.refusal(), AT_CAP, "I2");
    assert_eq!(game.live_lobbies(&stack).await, 15);

    set_cap(&stack, &game, 16).await;
    let _found = find_in(&stack, &game, "nyc").await.expect_ok();
    assert_eq!(find_in(&stack, &game, "nyc").await.refusal(), AT_CAP, "I2");
}

#[tokio::test]
async fn a_server_that_is_gone_holds_nothing_of_the_cap() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1, "idle_seconds": 3_600 } });
    let game = stack.make_game("gone", modes, 3, 0).await;
    let seconds = json!({ "lease_seconds": 10 });
    for name in ["silent", "leaving"] {
        let _registered = game.register(&stack, name, seconds.clone()).await;
        let found = find_in(&stack, &game, "fra").await.expect_ok();
        game.end_lobby(&stack, &found.lobby_id()).await.expect_ok();
        assert_eq!(game.game_server(&stack, name).await.allotted, 1);
        if name == "silent" {
            stack.clock.advance(Duration::from_secs(10));
        }
    }
    let _gone = game.serve(&stack, "deregister", json!({ "server_id": "leaving" })).await.expect_ok();
    assert_eq!(game.game_server(&stack, "leaving").await.allotted, 0);
    let _registered = game.register(&stack, "draining", seconds).await;
    let found = find_in(&stack, &game, "fra").await.expect_ok();
    let _going = game.serve(&stack, "deregister", json!({ "server_id": "draining" })).await.expect_ok();
    assert_eq!(game.game_server(&stack, "draining").await.allotted, 1, "its lobby lives");
    game.end_lobby(&stack, &found.lobby_id()).await.expect_ok();
    assert_eq!(game.game_server(&stack, "draining").await.allotted, 0);
    // The next look for a server puts the silent one out of sight.
    let _registered = game.register(&stack, "living", json!({})).await;
    stack.clock.advance(Duration::from_secs(1));
    let _found = find_in(&stack, &game, "fra").await.expect_ok();
    assert_eq!(game.game_server(&stack, "silent").await.allotted, 0);
    assert_eq!(stack.store().allotted_lobbies(game.namespace_id()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_find_is_refused_where_a_server_of_a_build_was_noted_and_nothing_is_allotted_yet() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("noted", modes, 9, 0).await;
    let pool = PlacementPool {
        namespace_id: game.namespace_id().clone(),
        region_id: "fra".parse().unwrap(),
        build_id: Some("build-1".parse().unwrap()),
    };
    stack.store().note_placement(&pool, stack.clock.now()).await.unwrap();
    assert_eq!(find_in(&stack, &game, "fra").await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "I3");
}

#[tokio::test]
async fn registering_again_keeps_the_allotment() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("again", modes, 9, 0).await;
    let _registered = game.register(&stack, "a", json!({})).await;
    let _found = find_in(&stack, &game, "fra").await.expect_ok();
    let body: Value = registration("a", &json!({ "capacity": 9 }));
    let _again = game.serve(&stack, "register", body).await.expect_ok();
    let server = game.game_server(&stack, "a").await;
    assert_eq!((server.used, server.allotted, server.capacity), (1, 1, 9));
    assert_eq!(game.live_lobbies(&stack).await, 1);
}

#[tokio::test]
async fn a_server_registers_with_a_block_while_half_of_the_cap_is_left() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("ahead", modes, 128, 0).await;
    let mut allotted = Vec::new();
    for n in 0..34 {
        let name = format!("s{n}");
        let _registered = game.register(&stack, &name, json!({ "capacity": 100 })).await;
        allotted.push(game.game_server(&stack, &name).await.allotted);
    }
    assert_eq!(allotted, [[2; 32].as_slice(), &[0, 0]].concat());
    let _again =
        game.serve(&stack, "register", registration("s0", &json!({ "capacity": 100 }))).await.expect_ok();
    assert_eq!(game.game_server(&stack, "s0").await.allotted, 2);
    assert_eq!(game.live_lobbies(&stack).await, 0);
    for _ in 0..128 {
        find_in(&stack, &game, "fra").await.expect_ok();
    }
    assert_eq!(find_in(&stack, &game, "fra").await.refusal(), AT_CAP);
    assert_eq!(game.live_lobbies(&stack).await, 128);
}

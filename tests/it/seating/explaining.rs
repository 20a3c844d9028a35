//! `muster-explain: 1`: why a find came out as it did, in counts.

use std::time::Duration;

use harness::{Answer, TestGame, TestStack, all_servers, instance::request};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use shared::{models::server::Server, wire::explanation::Creation};

pub(super) async fn explained(stack: &TestStack, token: Option<&str>, body: &Value) -> Answer {
    let url = format!("{}/matchmaker/lobbies/find", stack.demo().base_url);
    let mut request = Request::post(url).header("muster-explain", "1");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    stack.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

async fn game(stack: &TestStack, name: &str) -> TestGame {
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 2, "taggable": true } });
    stack.make_game(name, modes, 100, 100).await
}

async fn close(stack: &TestStack, game: &TestGame, lobby_id: &str) {
    let closed = (Method::PUT, "lobbies/closed");
    game.host(stack, lobby_id, closed, json!({ "is_closed": true })).await.expect_ok();
}

#[tokio::test]
async fn a_find_explains_its_search_creation_and_cost() {
    let stack = TestStack::start().await;
    let game = game(&stack, "told").await;
    let find = json!({ "game_modes": ["duel"], "tags": { "team": "red" } });
    let created = explained(&stack, Some(&game.public), &find).await.expect_ok();
    let explain = &created.body["explain"];
    let duel = json!({ "game_mode": "duel", "region_id": "fra" });
    let resolved = json!({
        "searched": [duel], "creates": duel, "tags": { "team": "red" }, "max_players": 2,
    });
    assert_eq!(explain["resolved"], resolved);
    assert_eq!((&explain["created"], &explain["creation"]), (&json!(true), &json!("nothing_joinable")));
    assert!(explain["calls"].as_u64() >= Some(3) && explain["write_units"].as_f64() > Some(1.0), "{explain}");

    let joined = explained(&stack, Some(&game.public), &find).await.expect_ok();
    assert_eq!(joined.lobby_id(), created.lobby_id());
    let explain = &joined.body["explain"];
    assert_eq!((&explain["created"], &explain["considered"]), (&json!(false), &json!(1)));
    assert!(explain.get("creation").is_none(), "{explain}");
    let plain = game.find(&stack, find).await.expect_ok();
    assert!(plain.body.get("explain").is_none(), "only when it is requested");
}

#[tokio::test]
async fn a_refused_find_explains_why_no_candidate_was_taken_and_names_none() {
    let stack = TestStack::start().await;
    let game = game(&stack, "refused").await;
    let existing = |tag: &str| json!({ "game_modes": ["duel"], "tags": { "team": tag }, "prevent_auto_create_lobby": true });
    let red =
        game.find(&stack, json!({ "game_modes": ["duel"], "tags": { "team": "red" } })).await.expect_ok();
    let answer = explained(&stack, Some(&game.public), &existing("blue")).await;
    assert_eq!(answer.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    let explain = &answer.body["metadata"]["explain"];
    assert_eq!(explain["refused"], json!({ "tag_mismatch": 1 }), "{explain}");
    assert_eq!((&explain["considered"], &explain["creation"]), (&json!(1), &json!("prevented")));
    assert!(!answer.body.to_string().contains(&red.lobby_id()), "counts, never identifiers");

    // A closed lobby stays unknown, once what the refused find saw no longer counts.
    close(&stack, &game, &red.lobby_id()).await;
    stack.clock.advance(Duration::from_secs(1));
    let answer = explained(&stack, Some(&game.public), &existing("red")).await;
    assert_eq!(answer.body["metadata"]["explain"]["considered"], 0);
}

#[tokio::test]
async fn a_find_in_a_busy_pool_says_beside_how_many_lobbies_it_created_one() {
    let stack = TestStack::start().await;
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("busy", modes, 100, 100).await;
    let instance = stack.instance();
    let body = json!({ "game_modes": ["duel"] });
    // From 32 finds in a second on.
    for _ in 0..31 {
        instance.find(&game.public, &body).await.unwrap();
    }
    let authorization = format!("Bearer {}", game.public);
    let headers = [("authorization", authorization.as_str()), ("muster-explain", "1")];
    let explain = instance.call(&request(&headers, &body)).await.unwrap().explain.unwrap();
    assert_eq!(
        (explain.creation, explain.lobbies_in_use),
        (Some(Creation::PoolBusy), Some(0)),
        "all are full"
    );
}

#[tokio::test]
async fn a_find_explains_that_the_request_excludes_a_lobby() {
    let stack = TestStack::start().await;
    let token = stack.demo().tokens.public.clone();
    let find = json!({ "game_modes": ["duel"] });
    let there = explained(&stack, Some(&token), &find).await.expect_ok().lobby_id();
    stack.clock.advance(Duration::from_secs(5));
    let elsewhere = json!({ "game_modes": ["duel"], "exclude_lobby_ids": [there] });
    let found = explained(&stack, Some(&token), &elsewhere).await.expect_ok();
    let explain = &found.body["explain"];
    assert_eq!(
        (&explain["considered"], &explain["refused"]),
        (&json!(1), &json!({ "excluded": 1 })),
        "{explain}"
    );
}

#[tokio::test]
async fn a_find_without_a_game_server_explains_why_none_had_a_place() {
    let stack = TestStack::start().await;
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 1 }, "arena": { "regions": ["nyc"] } });
    let game = stack.make_game("servers", modes, 100, 0).await;
    let register = async |id: &str, modes: Value| {
        game.register(&stack, id, json!({ "capacity": 1, "game_modes": modes })).await
    };
    let find = json!({ "game_modes": ["duel"] });
    let nobody = explained(&stack, Some(&game.public), &find).await;
    assert_eq!(nobody.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(nobody.body["metadata"]["explain"]["servers"], json!({}));

    for id in ["draining", "full"] {
        register(id, Value::Null).await;
        game.find(&stack, find.clone()).await.expect_ok();
    }
    game.serve(&stack, "deregister", json!({ "server_id": "draining" })).await.expect_ok();
    register("other", json!(["arena"])).await;
    register("clearing", Value::Null).await;
    let servers = all_servers(stack.store(), game.namespace_id()).await;
    let seen = servers.into_iter().find(|server| server.server.server_id.as_str() == "clearing").unwrap();
    let clearing = Server { is_clearing: true, ..seen.clone() };
    assert!(stack.store().replace_server(&clearing, &seen).await.unwrap());
    stack.clock.advance(Duration::from_secs(1));
    for said in ["as read", "from memory"] {
        let answer = explained(&stack, Some(&game.public), &find).await;
        assert_eq!(answer.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "{said}");
        let counts = &answer.body["metadata"]["explain"]["servers"];
        assert_eq!(*counts, json!({ "clearing": 1, "draining": 1, "full": 1, "unfit": 1 }), "{said}");
    }
}

#[tokio::test]
async fn a_refused_find_makes_later_ones_wait_for_no_lobby() {
    let stack = TestStack::start().await;
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("refused-before", modes, 100, 0).await;
    let find = json!({ "game_modes": ["duel"] });
    let mut calls = Vec::new();
    for _ in 0..2 {
        let answer = explained(&stack, Some(&game.public), &find).await;
        assert_eq!(answer.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
        let explain = &answer.body["metadata"]["explain"];
        assert_eq!(explain["refused"], json!({}), "a lobby that was never created is no candidate");
        calls.push(explain["calls"].as_u64().unwrap());
    }
    assert!(calls[1] < calls[0], "{calls:?}");

    let lease_until = stack.clock.now() + Duration::from_secs(60);
    game.add_server(&stack, "comes", "fra", 9, lease_until).await;
    let answer = explained(&stack, Some(&game.public), &find).await.expect_ok();
    assert_eq!(answer.body["explain"]["refused"], json!({}), "{}", answer.body);
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 1);
}

#[tokio::test]
async fn the_find_that_lets_a_silent_server_go_still_counts_it() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("let-go", json!({ "duel": { "regions": ["fra"], "max_players": 2 } }), 100, 0).await;
    for id in ["crashed", "too"] {
        game.add_server(&stack, id, "fra", 9, stack.clock.now() + Duration::from_secs(60)).await;
    }
    stack.clock.advance(Duration::from_secs(61));
    let refused = explained(&stack, Some(&game.public), &json!({ "game_modes": ["duel"] })).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    assert_eq!(refused.body["metadata"]["explain"]["servers"], json!({ "silent": 2 }), "{}", refused.body);
}

#[tokio::test]
async fn a_lobby_that_cannot_be_entered_counts_by_its_reason() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("silent", json!({ "duel": { "regions": ["fra"], "max_players": 2 } }), 100, 0).await;
    let lease_until = stack.clock.now() + Duration::from_secs(60);
    game.add_server(&stack, "silent", "fra", 9, lease_until).await;
    game.find(&stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    game.find(&stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    game.find(&stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    stack.clock.advance(Duration::from_secs(61));
    let existing = json!({ "game_modes": ["duel"], "prevent_auto_create_lobby": true });
    let answer = explained(&stack, Some(&game.public), &existing).await;
    assert_eq!(
        answer.body["metadata"]["explain"]["refused"],
        json!({ "lease_expired": 1 }),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn a_caller_who_may_not_find_gets_no_explanation() {
    let stack = TestStack::start().await;
    let game = game(&stack, "nobody").await;
    let find = json!({ "game_modes": ["duel"] });
    for token in [None, Some(game.server.as_str()), Some("pub_nonsense")] {
        let answer = explained(&stack, token, &find).await;
        assert!(answer.status.is_client_error());
        assert!(answer.body.pointer("/metadata/explain").is_none(), "{}", answer.body);
    }
    // A rule refused it before anything was searched.
    let answer = explained(&stack, Some(&game.public), &json!({ "game_modes": ["nothing"] })).await;
    assert_eq!(answer.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
    assert!(answer.body["metadata"]["explain"].get("resolved").is_none());
    assert_eq!(answer.body["metadata"]["game_mode"], "nothing", "beside what the code promises");
    let developer = stack.demo().tokens.development.clone();
    let mock = explained(&stack, Some(&developer), &find).await.expect_ok();
    assert!(mock.body["explain"].get("resolved").is_none(), "{}", mock.body);
}

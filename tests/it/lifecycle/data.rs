//! Every end of a lobby deletes its data in other items.

use std::time::Duration;

use harness::{Answer, TestGame, TestStack};
use serde_json::json;

use super::{READY, find, game, never_ready};

/// A request for a lobby with a configuration.
async fn create(stack: &TestStack, game: &TestGame) -> Answer {
    let body = json!({
        "game_mode": "arena", "region": "fra", "publicity": "private", "lobby_config": { "map": "x" }
    });
    game.play(stack, "lobbies/create", body).await
}

/// A lobby with a configuration.
async fn custom(stack: &TestStack, game: &TestGame) -> Answer {
    create(stack, game).await.expect_ok()
}

/// Items of the table of lobbies' states and configurations.
async fn items(stack: &TestStack) -> usize {
    let store = stack.store();
    let scan = store.client().scan().table_name(&store.tables().lobby_data).send().await.unwrap();
    scan.items().len()
}

#[tokio::test]
async fn every_end_of_a_lobby_deletes_its_configuration() {
    let stack = TestStack::start().await;
    let game = game(&stack, "data", json!({ "actions": { "create": { "enabled": true } } })).await;
    game.register(&stack, "one", json!({ "capacity": 1, "lease_seconds": 0 })).await;
    let lapsing = Duration::from_secs(121);
    custom(&stack, &game).await;
    assert_eq!(items(&stack).await, 1);
    stack.clock.advance(lapsing);
    // A find that needs the only place.
    custom(&stack, &game).await;
    assert_eq!((game.live_lobbies(&stack).await, items(&stack).await), (1, 1), "the second one's");
    stack.clock.advance(lapsing);
    find(&stack, &game).await.expect_ok();
    assert_eq!((game.live_lobbies(&stack).await, items(&stack).await), (1, 0));
    stack.clock.advance(lapsing);
    custom(&stack, &game).await;
    assert_eq!(items(&stack).await, 1);
    stack.clock.advance(lapsing);
    game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    assert_eq!((game.live_lobbies(&stack).await, items(&stack).await), (0, 0));
}

#[tokio::test]
async fn a_lobby_that_is_ready_too_late_goes_with_its_configuration_and_its_deregistered_server() {
    let stack = TestStack::start().await;
    let game = game(&stack, "late", json!({ "actions": { "create": { "enabled": true } } })).await;
    game.register(&stack, "one", json!({ "auto_ready": false, "lease_seconds": 0 })).await;
    let (timed_out, ()) = tokio::join!(create(&stack, &game), never_ready(&stack, &game));
    assert_eq!(timed_out.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
    game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    assert_eq!((game.live_lobbies(&stack).await, items(&stack).await), (1, 1), "it may still become ready");
    let lobby = stack.all_lobbies(game.namespace_id()).await.remove(0);
    stack.clock.advance(Duration::from_secs(275));
    let late = game.host(&stack, lobby.lobby_id.as_str(), READY, json!({})).await;
    assert_eq!(late.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    assert_eq!((game.live_lobbies(&stack).await, items(&stack).await), (0, 0));
    assert_eq!(
        stack.store().allotted_lobbies(game.namespace_id()).await.unwrap(),
        0,
        "its part of the cap is back"
    );
}

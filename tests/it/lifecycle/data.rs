//! What is kept of a lobby beside it goes with it, whoever ends it.

use std::time::Duration;

use muster_tests::{Answer, TestGame, TestStack};
use serde_json::json;

use super::{find, game, live, register};

/// A lobby with a configuration.
async fn custom(stack: &TestStack, game: &TestGame) -> Answer {
    let body = json!({
        "game_mode": "arena", "region": "fra", "publicity": "private", "lobby_config": { "map": "x" }
    });
    game.play(stack, "lobbies/create", body).await.expect_ok()
}

/// Items of the table of lobbies' states and configurations.
async fn items(stack: &TestStack) -> usize {
    let store = stack.store();
    let scan = store.client().scan().table_name(&store.tables().lobby_data).send().await.unwrap();
    scan.items().len()
}

#[tokio::test]
async fn a_configuration_goes_with_its_lobby_whoever_ends_it() {
    let stack = TestStack::start().await;
    let game = game(&stack, "data", json!({ "actions": { "create": { "enabled": true } } })).await;
    register(&stack, &game, "one", json!({ "capacity": 1, "lease_seconds": null })).await;
    let lapsing = Duration::from_secs(121);
    custom(&stack, &game).await;
    assert_eq!(items(&stack).await, 1);
    stack.clock.advance(lapsing);
    // Whoever needs the only place.
    custom(&stack, &game).await;
    assert_eq!((live(&stack, &game).await, items(&stack).await), (1, 1), "the second one's");
    stack.clock.advance(lapsing);
    find(&stack, &game).await.expect_ok();
    assert_eq!((live(&stack, &game).await, items(&stack).await), (1, 0));
    stack.clock.advance(lapsing);
    custom(&stack, &game).await;
    assert_eq!(items(&stack).await, 1);
    stack.clock.advance(lapsing);
    game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    assert_eq!((live(&stack, &game).await, items(&stack).await), (0, 0));
}

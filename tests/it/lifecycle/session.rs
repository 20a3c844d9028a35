//! The whole life of a lobby, and what a lobby server learns and says of it.

use std::time::Duration;

use harness::TestStack;
use http::Method;
use serde_json::json;
use shared::{
    models::{lifecycle::Transition, lobby::Stage, token::PlayerSeat},
    store::transitions::TransitionOutcome,
};

use super::{CLOSED, STATE, find, find_existing, game, listed};

#[tokio::test]
async fn a_lobby_is_found_filled_closed_reopened_left_and_ended() {
    let stack = TestStack::start().await;
    let game = game(&stack, "session", json!({ "max_players": 2, "max_players_direct": 3 })).await;
    game.register(&stack, "one", json!({})).await;

    let first = find(&stack, &game).await.expect_ok();
    let lobby_id = first.lobby_id();
    assert_eq!(first.body["ports"]["default"]["host"], "one.example:7777");
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [lobby_id.as_str()]);
    let seats = async || game.heartbeat(&stack, "one").await.expect_ok().body["lobbies"][0]["seats"].clone();
    assert_eq!(seats().await, json!({ "reserved": 1, "connected": 0 }));
    game.connect(&stack, &first).await.expect_ok();
    assert_eq!(seats().await, json!({ "reserved": 0, "connected": 1 }));

    let second = game.join(&stack, &lobby_id).await.expect_ok();
    game.connect(&stack, &second).await.expect_ok();
    let lobby = game.lobby(&stack, &lobby_id).await;
    assert_eq!((lobby.taken, lobby.reserved.len(), lobby.connected.len()), (2, 0, 2));
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));

    for _ in 0..2 {
        game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": true })).await.expect_ok();
    }
    game.disconnect(&stack, &second).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    for _ in 0..2 {
        game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": false })).await.expect_ok();
    }
    let third = find_existing(&stack, &game).await.expect_ok();
    assert_eq!(third.lobby_id(), lobby_id, "a reopened lobby is found again");
    game.connect(&stack, &third).await.expect_ok();

    for seat in [&third, &first] {
        game.disconnect(&stack, seat).await.expect_ok();
    }
    let lobby = game.lobby(&stack, &lobby_id).await;
    assert_eq!(lobby.stage, Stage::Ended, "it ends when its last player leaves");
    assert_eq!(game.live_lobbies(&stack).await, 0);
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [""; 0]);
    game.disconnect(&stack, &first).await.expect_ok();
    for answer in [
        game.connect(&stack, &third).await,
        game.join(&stack, &lobby_id).await,
        game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": true })).await,
        game.host(&stack, &lobby_id, STATE, json!({})).await,
    ] {
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    }
    for _ in 0..2 {
        game.end_lobby(&stack, &lobby_id).await.expect_ok();
    }
}

#[tokio::test]
async fn an_ended_lobby_gives_back_its_place_and_its_part_of_the_cap() {
    let stack = TestStack::start().await;
    let game = game(&stack, "ending", json!({ "max_players": 1 })).await;
    game.register(&stack, "one", json!({ "capacity": 1 })).await;
    let mut lobbies = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let seat = find(&stack, &game).await.expect_ok();
        assert_eq!(find(&stack, &game).await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
        let lobby_id = seat.lobby_id();
        let token = game.lobby_token(&stack, &lobby_id);
        let body = json!({ "lobby_id": lobby_id }).to_string();
        let path = "/matchmaker/servers/end-lobby";
        stack.call(Method::POST, path, Some(&token), body).await.expect_ok();
        assert!(lobbies.insert(lobby_id));
        assert_eq!(game.live_lobbies(&stack).await, 0);
    }
}

#[tokio::test]
async fn an_empty_lobby_stays_for_its_idle_time_and_is_ended_by_the_next_heartbeat() {
    let stack = TestStack::start().await;
    let game = game(&stack, "idle", json!({ "idle_seconds": 10 })).await;
    game.register(&stack, "one", json!({})).await;
    let seat = find(&stack, &game).await.expect_ok();
    let lobby_id = seat.lobby_id();
    game.connect(&stack, &seat).await.expect_ok();
    stack.clock.advance(Duration::from_secs(30));
    game.disconnect(&stack, &seat).await.expect_ok();

    stack.clock.advance(Duration::from_millis(9_999));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [lobby_id.as_str()]);
    stack.clock.advance(Duration::from_millis(1));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [""; 0]);
    assert_eq!(game.lobby(&stack, &lobby_id).await.stage, Stage::Ended);
    assert_eq!(game.live_lobbies(&stack).await, 0);
}

#[tokio::test]
async fn a_disconnect_that_crashed_before_the_lobby_ended_is_finished_by_its_repetition() {
    let stack = TestStack::start().await;
    let game = game(&stack, "crashed", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    let PlayerSeat { lobby_id, seat_id, .. } = stack.seat(&seat);
    let leave = Transition::Leave(seat_id);
    let left = stack.store().make_transition(&lobby_id, &leave, stack.clock.now()).await.unwrap();
    assert!(matches!(left, TransitionOutcome::Made(_)));
    assert_eq!(game.lobby(&stack, lobby_id.as_str()).await.stage, Stage::Ready);
    game.disconnect(&stack, &seat).await.expect_ok();
    assert_eq!(game.lobby(&stack, lobby_id.as_str()).await.stage, Stage::Ended, "I4");
    assert_eq!(game.live_lobbies(&stack).await, 0);
}

#[tokio::test]
async fn an_unjoined_lobby_lives_while_a_reservation_in_it_does() {
    let stack = TestStack::start().await;
    let game = game(&stack, "unjoined", json!({})).await;
    game.register(&stack, "one", json!({ "lease_seconds": 0 })).await;
    let first = find(&stack, &game).await.expect_ok();
    stack.clock.advance(Duration::from_secs(60));
    let second = find(&stack, &game).await.expect_ok();
    assert_eq!(first.lobby_id(), second.lobby_id());
    stack.clock.advance(Duration::from_millis(119_999));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [first.lobby_id()]);
    stack.clock.advance(Duration::from_millis(1));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [""; 0]);
    assert_eq!(game.live_lobbies(&stack).await, 0);
}

#[tokio::test]
async fn a_state_is_whatever_json_was_set_last_and_null_before() {
    let stack = TestStack::start().await;
    let game = game(&stack, "state", json!({})).await;
    game.register(&stack, "one", json!({})).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    let path = format!("/matchmaker/lobbies/{lobby_id}/state");
    let lobby_token = game.lobby_token(&stack, &lobby_id);
    let get = async |token: &str| stack.call(Method::GET, &path, Some(token), "").await;
    assert_eq!(get(&game.public).await.expect_ok().body, json!(null));
    for state in [json!({ "map": "harbour" }), json!([1, 2.5, null]), json!("text"), json!(null), json!(7)] {
        game.host(&stack, &lobby_id, STATE, state.clone()).await.expect_ok();
        assert_eq!(get(&game.public).await.expect_ok().body, state);
        assert_eq!(get(&lobby_token).await.expect_ok().body, state);
    }
    game.end_lobby(&stack, &lobby_id).await.expect_ok();
    assert_eq!(get(&game.public).await.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    let lobby_id = lobby_id.parse().unwrap();
    assert!(stack.store().lobby_state(&lobby_id).await.unwrap().is_none(), "its state ends with it");
}

#[tokio::test]
async fn a_lobby_of_ten_stays_within_one_write_unit_through_its_life() {
    let stack = TestStack::start().await;
    let game =
        game(&stack, "size", json!({ "max_players": 10, "max_players_direct": 12, "idle_seconds": 60 }))
            .await;
    game.register(&stack, "one", json!({ "auto_ready": true })).await;
    let mut seats = Vec::new();
    for _ in 0..10 {
        seats.push(find(&stack, &game).await.expect_ok());
    }
    for seat in &seats[..9] {
        game.connect(&stack, seat).await.expect_ok();
    }
    game.host(&stack, &seats[0].lobby_id(), STATE, json!({ "round": 1 })).await.expect_ok();
    game.disconnect(&stack, &seats[0]).await.expect_ok();
    find(&stack, &game).await.expect_ok();
    let key = aws_sdk_dynamodb::types::AttributeValue::S(seats[0].lobby_id());
    let read = stack.store().client().get_item().table_name(&stack.store().tables().lobbies);
    let item = read.key("lobby_id", key).send().await.unwrap().item.unwrap();
    let bytes = size_of_item(&item);
    assert!(bytes <= 1_024, "{bytes} bytes: {item:?}");
}

/// The size of an item as DynamoDB charges it: names and texts in UTF-8, numbers about a byte for two digits,
/// three for each list and map and one for each of their elements.
fn size_of_item(item: &std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

fn size_of(value: &aws_sdk_dynamodb::types::AttributeValue) -> usize {
    use aws_sdk_dynamodb::types::AttributeValue;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number.len().div_ceil(2) + 1,
        AttributeValue::M(fields) => 3 + size_of_item(fields) + fields.len(),
        AttributeValue::L(items) => 3 + items.iter().map(|item| 1 + size_of(item)).sum::<usize>(),
        _ => 1,
    }
}

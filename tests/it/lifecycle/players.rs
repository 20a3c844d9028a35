//! Players connect once, to the lobby that holds their seat, before it lapses (I7).

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::{join, join_all};
use harness::{Answer, TestGame, TestStack};
use http::Method;
use serde_json::json;
use shared::base::ambient::Timestamp;

use super::{find, find_existing, game};

const CONNECTED: (Method, &str) = (Method::POST, "players/connected");
const DISCONNECTED: (Method, &str) = (Method::POST, "players/disconnected");

async fn start(name: &str, mode: serde_json::Value) -> (TestStack, TestGame) {
    let stack = TestStack::start().await;
    let game = game(&stack, name, mode).await;
    game.register(&stack, "one", json!({ "capacity": 9, "lease_seconds": 0 })).await;
    (stack, game)
}

fn token(seat: &Answer) -> &str {
    seat.body["player"]["token"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn connecting_twice_is_refused_however_often() {
    let (stack, game) = start("twice", json!({})).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    for _ in 0..2 {
        let again = game.connect(&stack, &seat).await;
        assert_eq!(again.refusal(), (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED"));
    }
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.connected.len(), 1);
}

#[tokio::test]
async fn of_many_who_connect_with_one_token_at_once_one_does() {
    let (stack, game) = start("at-once", json!({})).await;
    for _ in 0..5 {
        let seat = find(&stack, &game).await.expect_ok();
        let answers = join_all((0..40).map(|_| game.connect(&stack, &seat))).await;
        let mut outcomes = BTreeMap::new();
        for answer in &answers {
            *outcomes.entry((answer.status.as_u16(), answer.body["code"].as_str())).or_insert(0) += 1;
        }
        let refused = ((400, Some("MATCHMAKER_PLAYER_ALREADY_CONNECTED")), 39);
        assert_eq!(outcomes, BTreeMap::from([((200, None), 1), refused]), "I7");
    }
}

#[tokio::test]
async fn connecting_works_until_the_reservation_lapses_and_not_after() {
    let (stack, game) = start("lapse", json!({})).await;
    let (early, late) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    stack.clock.advance(Duration::from_millis(119_999));
    game.connect(&stack, &early).await.expect_ok();
    stack.clock.advance(Duration::from_millis(1));
    let expired = (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED");
    assert_eq!(game.connect(&stack, &late).await.refusal(), expired);
    // Nine hours later the token itself has expired.
    stack.clock.advance(Duration::from_secs(9 * 3_600));
    assert_eq!(game.connect(&stack, &late).await.refusal(), expired);
}

#[tokio::test]
async fn a_full_lobby_is_in_sight_again_when_a_seat_lapses_or_is_left_and_not_while_all_are_connected() {
    let (stack, game) = start("full-sight", json!({ "max_players": 2 })).await;
    let pool = game.pool("arena", "fra");
    let in_sight = || async {
        let candidates = stack.store().candidates(&pool, 1, stack.clock.now(), 9).await.unwrap();
        candidates.into_iter().map(|candidate| candidate.lobby_id.to_string()).collect::<Vec<_>>()
    };
    let seats = [find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok()];
    let lobby = vec![seats[0].lobby_id()];
    game.connect(&stack, &seats[0]).await.expect_ok();
    stack.clock.advance(Duration::from_secs(60));
    assert!(in_sight().await.is_empty());
    game.connect(&stack, &seats[1]).await.expect_ok();
    for passed in [60, 3_600, 6 * 3_600] {
        stack.clock.advance(Duration::from_secs(passed));
        assert!(in_sight().await.is_empty(), "I14");
    }
    game.disconnect(&stack, &seats[0]).await.expect_ok();
    assert_eq!(in_sight().await, lobby);
    // A find that takes the seat without a connect holds it for two minutes.
    assert_eq!(vec![find(&stack, &game).await.expect_ok().lobby_id()], lobby);
    assert!(in_sight().await.is_empty());
    stack.clock.advance(Duration::from_secs(120));
    assert_eq!(in_sight().await, lobby, "I4");
}

#[tokio::test]
async fn a_lapsed_reservation_differs_from_a_seat_that_was_left() {
    let (stack, game) = start("taken-over", json!({ "max_players": 2 })).await;
    let (stays, lapses) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    game.connect(&stack, &stays).await.expect_ok();
    stack.clock.advance(Duration::from_secs(120));
    let taker = find_existing(&stack, &game).await.expect_ok();
    assert_eq!(taker.lobby_id(), lapses.lobby_id());
    assert_eq!(
        game.connect(&stack, &lapses).await.refusal(),
        (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED")
    );
    game.connect(&stack, &taker).await.expect_ok();

    stack.clock.advance(Duration::from_secs(1_000));
    game.disconnect(&stack, &taker).await.expect_ok();
    for _ in 0..2 {
        assert_eq!(game.connect(&stack, &taker).await.refusal(), (400, "MATCHMAKER_PLAYER_REMOVED"));
        game.disconnect(&stack, &taker).await.expect_ok();
    }
    let lobby = game.lobby(&stack, &stays.lobby_id()).await;
    assert_eq!((lobby.taken, lobby.connected.len(), lobby.reserved.len()), (1, 1, 0), "I4");
}

#[tokio::test]
async fn a_player_who_leaves_before_connecting_is_removed() {
    let (stack, game) = start("before", json!({})).await;
    let (goes, stays) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    game.disconnect(&stack, &goes).await.expect_ok();
    assert_eq!(game.connect(&stack, &goes).await.refusal(), (400, "MATCHMAKER_PLAYER_REMOVED"));
    assert_eq!(game.lobby(&stack, &stays.lobby_id()).await.taken, 1);
    game.connect(&stack, &stays).await.expect_ok();
}

async fn leave(stack: &TestStack, seat: &Answer) -> Answer {
    let body = json!({ "player_token": token(seat) }).to_string();
    stack.call(Method::POST, "/matchmaker/players/leave", None, body).await
}

#[tokio::test]
async fn a_seat_given_up_is_free_at_once_and_its_lobby_serves_the_next_find() {
    let (stack, game) = start("given-up", json!({ "max_players": 2 })).await;
    let (stays, goes) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    assert_eq!(goes.lobby_id(), stays.lobby_id());
    for _ in 0..2 {
        assert_eq!(leave(&stack, &goes).await.expect_ok().body, json!({}));
    }
    assert_eq!(game.connect(&stack, &goes).await.refusal(), (400, "MATCHMAKER_PLAYER_REMOVED"), "I7");
    let next = find(&stack, &game).await.expect_ok();
    assert_eq!(next.lobby_id(), stays.lobby_id(), "I9");
    leave(&stack, &goes).await.expect_ok();
    leave(&stack, &next).await.expect_ok();
    leave(&stack, &stays).await.expect_ok();
    let lobby = game.lobby(&stack, &stays.lobby_id()).await;
    assert_eq!((lobby.taken, lobby.reserved.len()), (0, 0), "I4");
    assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), stays.lobby_id(), "it is used again");
}

#[tokio::test]
async fn a_connected_seat_stays_until_its_server_frees_it() {
    let (stack, game) = start("stays", json!({ "max_players": 2 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    leave(&stack, &seat).await.expect_ok();
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.connected.len(), 1);
    assert_eq!(game.connect(&stack, &seat).await.refusal(), (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED"));
    game.disconnect(&stack, &seat).await.expect_ok();
    leave(&stack, &seat).await.expect_ok();
}

#[tokio::test]
async fn a_seat_that_is_gone_can_be_given_up_again() {
    let (stack, game) = start("gone", json!({})).await;
    let (ended, lapsed) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    stack.clock.advance(Duration::from_secs(121));
    leave(&stack, &lapsed).await.expect_ok();
    game.end_lobby(&stack, &ended.lobby_id()).await.expect_ok();
    leave(&stack, &ended).await.expect_ok();
    // Its token has expired.
    stack.clock.advance(Duration::from_secs(10 * 3_600));
    leave(&stack, &lapsed).await.expect_ok();
    let forged = json!({ "player_token": "player_forged" }).to_string();
    let refused = stack.call(Method::POST, "/matchmaker/players/leave", None, forged).await;
    assert_eq!(refused.refusal(), (400, "TOKEN_INVALID"));
}

#[tokio::test]
async fn of_a_player_who_gives_up_and_connects_at_once_one_thing_happened() {
    let (stack, game) = start("either", json!({ "max_players": 256 })).await;
    let mut seats = Vec::new();
    for _ in 0..40 {
        seats.push(find(&stack, &game).await.expect_ok());
    }
    let both = seats.iter().map(async |seat| {
        let (left, connected) = join(leave(&stack, seat), game.connect(&stack, seat)).await;
        left.expect_ok();
        if connected.status.as_u16() == 200 {
            return true;
        }
        assert_eq!(connected.refusal(), (400, "MATCHMAKER_PLAYER_REMOVED"));
        false
    });
    let connected: Vec<bool> = join_all(both).await;
    let lobby = game.lobby(&stack, &seats[0].lobby_id()).await;
    let are_in = seats.iter().map(|seat| lobby.connected.contains_key(&stack.seat(seat).seat_id));
    assert_eq!(are_in.collect::<Vec<_>>(), connected, "I4, I7");
    assert_eq!((lobby.reserved.len(), lobby.taken as usize), (0, lobby.connected.len()), "I1");
}

#[tokio::test]
async fn another_lobby_is_not_the_players_and_the_seat_stays_where_it_is() {
    let (stack, game) = start("another", json!({ "max_players": 1 })).await;
    let (here, there) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    assert_ne!(here.lobby_id(), there.lobby_id());
    for operation in [CONNECTED, DISCONNECTED] {
        let body = json!({ "player_token": token(&here) });
        let answer = game.host(&stack, &there.lobby_id(), operation, body).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY"));
    }
    game.connect(&stack, &here).await.expect_ok();
}

#[tokio::test]
async fn a_connected_player_holds_the_seat_for_eight_hours_at_most() {
    let (stack, game) = start("eight-hours", json!({ "max_players": 1 })).await;
    let seat = find(&stack, &game).await.expect_ok();
    game.connect(&stack, &seat).await.expect_ok();
    stack.clock.advance(Duration::from_millis(8 * 3_600_000 - 1));
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    stack.clock.advance(Duration::from_millis(1));
    let next = find_existing(&stack, &game).await.expect_ok();
    assert_eq!(next.lobby_id(), seat.lobby_id());
    // The token has lived nine hours by then, and still frees nothing but its own seat.
    stack.clock.advance(Duration::from_secs(3_601));
    game.disconnect(&stack, &seat).await.expect_ok();
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.taken, 1);
}

#[tokio::test]
async fn a_full_lobby_is_found_again_as_soon_as_a_player_left() {
    let (stack, game) = start("left", json!({ "max_players": 2 })).await;
    let (first, second) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    for seat in [&first, &second] {
        game.connect(&stack, seat).await.expect_ok();
    }
    let none = (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
    assert_eq!(find_existing(&stack, &game).await.refusal(), none);
    let mut last = second;
    for _ in 0..3 {
        game.disconnect(&stack, &last).await.expect_ok();
        last = find_existing(&stack, &game).await.expect_ok();
        assert_eq!(last.lobby_id(), first.lobby_id());
        assert_eq!(find_existing(&stack, &game).await.refusal(), none);
    }
    // The same through a join, which fills it as a find does.
    game.disconnect(&stack, &last).await.expect_ok();
    game.join(&stack, &first.lobby_id()).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.refusal(), none);
}

#[tokio::test]
async fn a_lobby_that_joins_filled_beyond_finds_is_in_sight_once_a_find_has_a_seat_there() {
    let (stack, game) = start("beyond", json!({ "max_players": 2, "max_players_direct": 3 })).await;
    let (first, lapsing) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    let joined = game.join(&stack, &first.lobby_id()).await.expect_ok();
    for seat in [&first, &joined] {
        game.connect(&stack, seat).await.expect_ok();
    }
    let lobby = async || game.lobby(&stack, &first.lobby_id()).await;
    stack.clock.advance(lobby().await.reservation());
    let none = (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
    assert_eq!(find_existing(&stack, &game).await.refusal(), none, "one lapsed seat of three is none of two");
    assert!(lobby().await.joinable_from > Some(stack.clock.now()), "I14");
    game.disconnect(&stack, &joined).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), lapsing.lobby_id(), "I10");
}

#[tokio::test]
async fn a_lobby_that_a_find_filled_through_the_head_is_in_sight_when_its_oldest_seat_lapses() {
    let (stack, game) = start("guest", json!({ "max_players": 2 })).await;
    let (oldest, left) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    game.connect(&stack, &left).await.expect_ok();
    let lobby = async || game.lobby(&stack, &oldest.lobby_id()).await;
    stack.clock.advance(lobby().await.reservation() / 2);
    game.disconnect(&stack, &left).await.expect_ok();
    stack.show_from(&oldest.lobby_id(), stack.clock.now() + Duration::from_millis(1)).await;
    assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), oldest.lobby_id(), "I9");
    stack.clock.advance(lobby().await.reservation() / 2);
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), oldest.lobby_id(), "I3");
}

#[tokio::test]
async fn a_freed_seat_that_the_index_does_not_show_yet_is_found_through_the_head() {
    let (stack, game) = start("lag", json!({ "max_players": 2 })).await;
    let (first, mut second) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    for seat in [&first, &second] {
        game.connect(&stack, seat).await.expect_ok();
    }
    for age in [Duration::ZERO, Duration::from_millis(500)] {
        // Long after the burst that the lobby came from.
        stack.clock.advance(Duration::from_secs(60));
        game.disconnect(&stack, &second).await.expect_ok();
        stack.show_from(&first.lobby_id(), Timestamp::NEVER).await;
        stack.clock.advance(age);
        let next = find(&stack, &game).await.expect_ok();
        assert_eq!(next.lobby_id(), first.lobby_id(), "I9, {age:?} after");
        game.connect(&stack, &next).await.expect_ok();
        second = next;
    }
}

#[tokio::test]
async fn a_player_is_described_to_the_lobby_server_that_asks_and_to_no_other() {
    let (stack, game) = start("details", json!({})).await;
    let data = json!({ "name": "Ada", "skin": 3 });
    let body = json!({ "game_modes": ["arena"], "player_data": data });
    let (seat, plain) = (game.find(&stack, body).await.expect_ok(), find(&stack, &game).await.expect_ok());
    let lobby = seat.lobby_id();
    let connect = async |seat: &Answer, details: serde_json::Value| {
        let body = json!({ "player_token": token(seat), "details": details });
        game.host(&stack, &lobby, CONNECTED, body).await
    };
    let described = json!({ "player_id": stack.seat(&seat).seat_id, "generation": 0, "player_data": data });
    assert_eq!(connect(&seat, true.into()).await.expect_ok().body, described);
    let again = connect(&seat, true.into()).await;
    assert_eq!(again.refusal(), (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED"));
    assert_eq!(again.body["metadata"], described);
    for details in [false.into(), serde_json::Value::Null] {
        let again = connect(&seat, details).await;
        assert_eq!(again.refusal(), (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED"));
        assert_eq!(again.body.get("metadata"), None);
    }
    let without = json!({ "player_id": stack.seat(&plain).seat_id, "generation": 0 });
    assert_eq!(connect(&plain, true.into()).await.expect_ok().body, without);
    assert_ne!(without["player_id"], described["player_id"]);
    let third = find(&stack, &game).await.expect_ok();
    assert_eq!(game.connect(&stack, &third).await.expect_ok().text, "{}");
    let fourth = find(&stack, &game).await.expect_ok();
    assert_eq!(connect(&fourth, "yes".into()).await.refusal(), (400, "API_BAD_BODY"));
}

#[tokio::test]
async fn data_of_512_bytes_fits_into_a_token_and_only_there() {
    let (stack, game) = start("data", json!({ "actions": { "create": { "enabled": true } } })).await;
    let plain = find(&stack, &game).await.expect_ok();
    let largest = "ä".repeat(255);
    let ask = async |operation: &str, data: &str| {
        let mut body = match operation {
            "find" => json!({ "game_modes": ["arena"] }),
            "join" => json!({ "lobby_id": plain.lobby_id() }),
            _ => json!({ "game_mode": "arena" }),
        };
        body["player_data"] = data.into();
        game.play(&stack, &format!("lobbies/{operation}"), body).await
    };
    for operation in ["find", "join", "create"] {
        let seat = ask(operation, &largest).await.expect_ok();
        assert!(token(&seat).len() < 1_200, "{}", token(&seat).len());
        let data = stack.seat(&seat).data.map(|data| serde_json::to_value(data).unwrap());
        assert_eq!(data, Some(largest.as_str().into()), "{operation}");
        let refused = ask(operation, &format!("{largest}x")).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"));
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains("`player_data`: larger than 512 bytes"), "{message}");
    }
    let empty = json!({ "game_modes": ["arena"], "player_data": null });
    let empty = game.find(&stack, empty).await.expect_ok();
    assert_eq!((stack.seat(&empty).data, token(&empty).len()), (None, token(&plain).len()));
    for lobby in stack.all_lobbies(game.namespace_id()).await {
        assert!(!serde_json::to_string(&lobby).unwrap().contains('ä'));
    }
}

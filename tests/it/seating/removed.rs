//! A player whom a lobby server removes is not seated in its lobby again for a while.

use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

use futures_util::future::join_all;
use harness::{Answer, TestGame, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::{
    function::operation::WARNING_HEADER,
    models::{client::Client, token::PlayerSeat},
};

use super::{HOME, arena, capped_game, explaining::explained, find_from, request};

const REMOVE: (Method, &str) = (Method::POST, "players/remove");
const REMOVED: (u16, &str) = (400, "MATCHMAKER_PLAYER_REMOVED");
const AWAY: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 1);

async fn remove(stack: &TestStack, game: &TestGame, seat: &Answer, fields: Value) -> Answer {
    let mut body = json!({ "player_token": seat.body["player"]["token"] });
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    game.host(stack, &seat.lobby_id(), REMOVE, body).await
}

fn warning(answer: &Answer) -> Option<&str> {
    answer.headers.get(WARNING_HEADER).and_then(|line| line.to_str().ok())
}

#[tokio::test]
async fn a_removed_player_is_seated_elsewhere_until_the_time_is_over() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "removed", 8).await;
    let stays = find_from(&stack, &game, AWAY).await.expect_ok();
    let seat = find_from(&stack, &game, HOME).await.expect_ok();
    assert_eq!(seat.lobby_id(), stays.lobby_id());
    game.connect(&stack, &seat).await.expect_ok();
    for _ in 0..2 {
        let removed = remove(&stack, &game, &seat, json!({ "exclude_seconds": 600 })).await.expect_ok();
        assert_eq!((&removed.body, warning(&removed)), (&json!({}), None));
    }
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.taken, 1);
    assert_eq!(game.connect(&stack, &seat).await.refusal(), REMOVED);

    let mut existing = arena();
    existing["prevent_auto_create_lobby"] = json!(true);
    let refused = explained(&stack, Some(&game.public), &existing).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    assert_eq!(refused.body["metadata"]["explain"]["refused"], json!({ "excluded": 1 }));
    let join = json!({ "lobby_id": stays.lobby_id() });
    let joined = stack.send(request(&game, &stack.demo().base_url, "join", None, &join)).await;
    assert_eq!(joined.refusal(), REMOVED);
    let other = find_from(&stack, &game, HOME).await.expect_ok();
    assert_ne!(other.lobby_id(), stays.lobby_id());
    assert_eq!(find_from(&stack, &game, AWAY).await.expect_ok().lobby_id(), stays.lobby_id());
    game.end_lobby(&stack, &other.lobby_id()).await.expect_ok();

    stack.clock.advance(Duration::from_millis(599_999));
    assert_ne!(find_from(&stack, &game, HOME).await.expect_ok().lobby_id(), stays.lobby_id());
    stack.clock.advance(Duration::from_millis(1));
    let again = stack.send(request(&game, &stack.demo().base_url, "join", None, &join)).await;
    assert_eq!(again.expect_ok().lobby_id(), stays.lobby_id());
}

#[tokio::test]
async fn of_many_finds_at_once_none_is_seated_where_their_client_is_kept_out() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "burst", 40).await;
    let seat = find_from(&stack, &game, HOME).await.expect_ok();
    let stays = find_from(&stack, &game, AWAY).await.expect_ok();
    remove(&stack, &game, &seat, json!({})).await.expect_ok();
    for _ in 0..2 {
        let answers = join_all((0..15).map(|_| find_from(&stack, &game, HOME))).await;
        let seats = answers.into_iter().map(|answer| super::seat(&stack, &answer.expect_ok()));
        let seats: BTreeSet<_> = seats.collect();
        assert_eq!(seats.len(), 15, "I1");
        assert!(seats.iter().all(|(lobby, _)| *lobby != stays.lobby_id()), "{seats:?}");
        stack.clock.advance(Duration::from_millis(300));
    }
    assert_eq!(game.lobby(&stack, &stays.lobby_id()).await.taken, 1);
}

#[tokio::test]
async fn a_removed_player_leaves_a_seat_for_others_or_takes_an_empty_lobby_along() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "seats", 40).await;
    let full: Vec<_> = join_all((0..10).map(|_| find_from(&stack, &game, HOME))).await;
    let lobbies: BTreeSet<_> = full.iter().map(Answer::lobby_id).collect();
    assert_eq!(lobbies.len(), 1, "it is full");
    // A find skips a lobby that was full a moment ago.
    stack.clock.advance(Duration::from_secs(3));
    remove(&stack, &game, &full[0], json!({})).await.expect_ok();
    assert_eq!(find_from(&stack, &game, AWAY).await.expect_ok().lobby_id(), full[0].lobby_id());

    let create = json!({ "game_mode": "arena", "lobby_config": { "rounds": 3 } });
    let created = stack.send(request(&game, &stack.demo().base_url, "create", None, &create)).await;
    let created = created.expect_ok();
    game.connect(&stack, &created).await.expect_ok();
    remove(&stack, &game, &created, json!({})).await.expect_ok();
    let refused = game.connect(&stack, &created).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
}

#[tokio::test]
async fn without_a_limit_of_seats_nobody_is_recognised_and_the_response_says_so() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 10 } });
    let game = stack.make_game("unknown", modes, 100, 100).await;
    let (stays, seat) = (game.find(&stack, arena()).await, game.find(&stack, arena()).await.expect_ok());
    let removed = remove(&stack, &game, &seat, json!({})).await.expect_ok();
    assert!(warning(&removed).is_some_and(|line| line.contains("may come back")), "{removed:?}");
    let removed = remove(&stack, &game, &seat, json!({ "exclude_seconds": 0 })).await.expect_ok();
    assert_eq!(warning(&removed), None);
    assert_eq!(game.find(&stack, arena()).await.expect_ok().lobby_id(), stays.expect_ok().lobby_id());
}

#[tokio::test]
async fn a_time_that_is_too_long_is_refused_and_none_keeps_nobody_out() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "times", 8).await;
    let seat = find_from(&stack, &game, HOME).await.expect_ok();
    for secs in [json!(28_801), json!(-1), json!(1.5), json!("600")] {
        let refused = remove(&stack, &game, &seat, json!({ "exclude_seconds": secs })).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"), "{secs}");
    }
    assert_eq!(game.lobby(&stack, &seat.lobby_id()).await.taken, 1, "nothing was changed");
    game.connect(&stack, &find_from(&stack, &game, AWAY).await.expect_ok()).await.expect_ok();
    remove(&stack, &game, &seat, json!({ "exclude_seconds": 0 })).await.expect_ok();
    assert_eq!(find_from(&stack, &game, HOME).await.expect_ok().lobby_id(), seat.lobby_id());
}

#[tokio::test]
async fn removals_that_are_over_are_forgotten_at_the_next_one() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "forgotten", 40).await;
    for _ in 0..3 {
        let seat = find_from(&stack, &game, HOME).await.expect_ok();
        remove(&stack, &game, &seat, json!({ "exclude_seconds": 60 })).await.expect_ok();
        let PlayerSeat { namespace_id, client, .. } = stack.seat(&seat);
        let client = Client { namespace_id, client_id: client.unwrap() };
        let kept_out_of = stack.store().holds(&client).await.unwrap().removed_from;
        assert_eq!(
            kept_out_of.into_keys().map(|id| id.to_string()).collect::<Vec<_>>(),
            [seat.lobby_id()],
            "I14"
        );
        stack.clock.advance(Duration::from_secs(61));
    }
}

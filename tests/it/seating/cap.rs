//! The cap on the seats of one client, by its address (I12).

use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

use futures_util::future::join_all;
use harness::{Answer, TestGame, TestStack, instance, interference::Before};
use muster_local::emulator::link::Call;
use serde_json::json;
use shared::{
    models::{client::Client, errors::Error, lobby::EndCause, token::PlayerSeat},
    store::holds::REPLACED_MAX,
};

use super::{CAP, HOME, arena, capped_game, find_from, items, seat, seats_held};

const TOO_MANY: (u16, &str) = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");

/// As many finds at once from one address; those that got a seat.
async fn finds(stack: &TestStack, game: &TestGame, address: Ipv4Addr, count: usize) -> Vec<Answer> {
    let answers = join_all((0..count).map(|_| find_from(stack, game, address))).await;
    let (seated, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status.is_success());
    for answer in refused {
        assert_eq!(answer.refusal(), TOO_MANY);
    }
    seated
}

fn seats(stack: &TestStack, answers: &[Answer]) -> BTreeSet<(String, String)> {
    answers.iter().map(|answer| seat(stack, answer)).collect()
}

#[tokio::test]
async fn a_hundred_finds_of_one_address_get_exactly_the_seats_that_it_may_hold() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "hundred", CAP).await;
    let seated = finds(&stack, &game, HOME, 100).await;
    assert_eq!(seated.len(), CAP as usize, "I12");
    assert_eq!(seats_held(&stack, &game).await, seats(&stack, &seated), "I12, I4");
}

#[tokio::test]
async fn each_of_twenty_addresses_gets_exactly_the_seats_that_it_may_hold() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "twenty", CAP).await;
    let addresses: Vec<_> = (1..=20).map(|last| Ipv4Addr::new(127, 0, 1, last)).collect();
    let seated = join_all(addresses.iter().map(|address| finds(&stack, &game, *address, 12))).await;
    assert!(seated.iter().all(|seated| seated.len() == CAP as usize), "I12");
    assert_eq!(seats_held(&stack, &game).await, seats(&stack, &seated.concat()), "I12, I4");
}

#[tokio::test]
async fn what_is_left_lapses_or_ends_can_be_held_again_and_no_more() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "freed", CAP).await;
    let first = finds(&stack, &game, HOME, CAP as usize).await;
    for answer in &first[..4] {
        game.connect(&stack, answer).await.expect_ok();
    }
    // Two leave, one of them connected; one of them twice.
    for answer in [&first[0], &first[4], &first[4]] {
        game.disconnect(&stack, answer).await.expect_ok();
    }
    let second = finds(&stack, &game, HOME, 10).await;
    assert_eq!(second.len(), 2, "what was left, at once");

    // The three that are connected stay, five reservations lapse.
    stack.clock.advance(Duration::from_secs(121));
    let third = finds(&stack, &game, HOME, 20).await;
    assert_eq!(third.len(), 5, "what lapsed");
    assert_eq!(seats_held(&stack, &game).await.len(), CAP as usize, "I12");

    for lobby_id in seats(&stack, &first).into_iter().chain(seats(&stack, &third)).map(|(lobby, _)| lobby) {
        game.end_lobby(&stack, &lobby_id).await.expect_ok();
    }
    let fourth = finds(&stack, &game, HOME, 20).await;
    assert_eq!(fourth.len(), CAP as usize, "what ended");
    assert_eq!(seats_held(&stack, &game).await, seats(&stack, &fourth), "I12");
}

#[tokio::test]
async fn a_client_that_is_refused_again_costs_two_reads_and_is_seated_once_a_lobby_ended() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "again", CAP).await;
    let instance = stack.instance();
    let find = async || instance.find(&game.public, &arena()).await;
    let first = find().await.unwrap();
    for _ in 1..CAP {
        find().await.unwrap();
    }
    let refused = async || find().await.unwrap_err().status_and_code().1;
    let code = "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE";
    assert_eq!(refused().await, code);
    let before = instance.usage();
    assert_eq!(refused().await, code);
    let used = instance.usage() - before;
    assert_eq!((used.calls, used.write_units), (2, 0.0), "its holds, and their lobbies");
    game.end_lobby(&stack, first.lobby.lobby_id.as_str()).await.expect_ok();
    find().await.unwrap();
}

#[tokio::test]
async fn a_find_whose_hold_was_replaced_as_its_lobby_ended_gives_its_seat_back() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "replaced", 1).await;
    let (lobby_id, _) = seat(&stack, &find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 1)).await);
    let ended = game.lobby(&stack, &lobby_id).await;

    // It takes its seat, and does not hear of it: the lobby ends, and the same client finds another one.
    let (other, store, ambient) = (stack.instance(), stack.store().clone(), stack.ambient());
    let public = game.public.clone();
    let meanwhile = async move {
        store.end_lobby(&ended, EndCause::Requested, &ambient).await.unwrap();
        other.find(&public, &arena()).await.unwrap();
    };
    let is_seat = |call: &Call| {
        let body = String::from_utf8_lossy(&call.body);
        call.operation == "UpdateItem" && body.contains("LobbiesTable") && body.contains("#reserved.#seat")
    };
    let link = Before::repetition(stack.stack.store_link(), is_seat, meanwhile);
    let instance = stack.instance_over(link);
    let refused = instance.find(&game.public, &arena()).await;
    assert!(matches!(refused, Err(Error::TooManyPlayersFromSource { .. })), "I12: {refused:?}");
    let held = seats_held(&stack, &game).await;
    assert_eq!(held.len(), 1, "I12, I4: {held:?}");
}

#[tokio::test]
async fn seats_of_a_server_that_died_can_be_held_again() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "dead", CAP).await;
    let dying = stack.clock.now() + Duration::from_secs(60);
    // The fullest server first: the new one has one place, so it is the fuller.
    game.add_server(&stack, "dying", "fra", 1, dying).await;
    let first = finds(&stack, &game, HOME, CAP as usize).await;
    for answer in &first {
        game.connect(&stack, answer).await.expect_ok();
    }
    let is_on_dying = |answer: &Answer| answer.body["ports"]["default"]["hostname"] == "dying.example";
    assert!(first.iter().all(is_on_dying));
    assert_eq!(find_from(&stack, &game, HOME).await.refusal(), TOO_MANY);
    stack.clock.advance(Duration::from_secs(61));
    let second = finds(&stack, &game, HOME, 20).await;
    assert_eq!(second.len(), CAP as usize, "I12");
    assert!(!second.iter().any(is_on_dying), "I6");
}

#[tokio::test]
async fn a_join_frees_what_its_client_held_on_a_server_that_died() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "dead-join", 1).await;
    let dying = stack.clock.now() + Duration::from_secs(60);
    game.add_server(&stack, "dying", "fra", 1, dying).await;
    let custom = json!({ "game_mode": "arena", "publicity": "private", "lobby_config": { "map": "x" } });
    let held = game.play(&stack, "lobbies/create", custom).await.expect_ok();
    assert_eq!(held.body["ports"]["default"]["hostname"], "dying.example");
    let open = find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 1)).await.expect_ok();
    let join = json!({ "lobby_id": open.lobby_id() });
    assert_eq!(game.play(&stack, "lobbies/join", join.clone()).await.refusal(), TOO_MANY);
    stack.clock.advance(Duration::from_secs(61));
    game.play(&stack, "lobbies/join", join).await.expect_ok();
    assert_eq!(game.lobby(&stack, &held.lobby_id()).await.stage, shared::models::lobby::Stage::Ended);
}

#[tokio::test]
async fn joins_and_custom_lobbies_count_too_and_other_namespaces_do_not() {
    let stack = TestStack::start().await;
    let (game, other) = (capped_game(&stack, "all", 3).await, capped_game(&stack, "other", 3).await);
    let found = game.find(&stack, arena()).await.expect_ok();
    game.join(&stack, &found.lobby_id()).await.expect_ok();
    let custom = json!({ "game_mode": "arena", "publicity": "private" });
    game.play(&stack, "lobbies/create", custom.clone()).await.expect_ok();
    assert_eq!(game.find(&stack, arena()).await.refusal(), TOO_MANY);
    assert_eq!(game.play(&stack, "lobbies/create", custom).await.refusal(), TOO_MANY);
    let join = json!({ "lobby_id": found.lobby_id() });
    assert_eq!(game.play(&stack, "lobbies/join", join).await.refusal(), TOO_MANY);
    assert_eq!(seats_held(&stack, &game).await.len(), 3, "I12");
    other.find(&stack, arena()).await.expect_ok();
}

#[tokio::test]
async fn a_refused_find_holds_nothing_and_the_cap_comes_before_the_match() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "refused", 1).await;
    let nothing = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true, "regions": ["fra"] });
    for _ in 0..3 {
        let refused = game.find(&stack, nothing.clone()).await;
        assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    }
    let gone = json!({ "lobby_id": "00000000-0000-0000-0000-000000000001" });
    assert_eq!(game.play(&stack, "lobbies/join", gone).await.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"));
    let found = find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 1)).await.expect_ok();
    game.host(&stack, &found.lobby_id(), (http::Method::PUT, "lobbies/closed"), json!({ "is_closed": true }))
        .await
        .expect_ok();
    game.find(&stack, arena()).await.expect_ok();
    // Nothing joinable in sight for a find that may not create; at its cap all the same.
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    for lobby in lobbies.iter().filter(|lobby| !lobby.closed) {
        let id = lobby.lobby_id.to_string();
        game.host(&stack, &id, (http::Method::PUT, "lobbies/closed"), json!({ "is_closed": true }))
            .await
            .expect_ok();
    }
    assert_eq!(game.find(&stack, nothing).await.refusal(), TOO_MANY);
}

#[tokio::test]
async fn a_lowered_cap_takes_no_seat_away_and_a_high_one_notes_nothing() {
    let stack = TestStack::start().await;
    let unlimited = capped_game(&stack, "unlimited", 1_001).await;
    assert_eq!(finds(&stack, &unlimited, HOME, 20).await.len(), 20);
    assert_eq!(items(&stack).await, 0);

    let game = capped_game(&stack, "lowered", CAP).await;
    let seated = finds(&stack, &game, HOME, CAP as usize).await;
    let lowered = stack.instance();
    let right = shared::models::rights::GameRight::of_operator(game.game_id().clone());
    let right = right.on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    stack.store().set_matchmaker_config(&right, 1_000, 2).await.unwrap();
    let event = instance::request(&[("authorization", &format!("Bearer {}", game.public))], &arena());
    assert!(lowered.call(&event).await.is_err(), "eight are more than two");
    for answer in &seated[..6] {
        game.disconnect(&stack, answer).await.expect_ok();
    }
    assert!(lowered.call(&event).await.is_err(), "two are as many as two");
    game.disconnect(&stack, &seated[6]).await.expect_ok();
    lowered.call(&event).await.unwrap();
}

#[tokio::test]
async fn no_more_lapsed_seats_are_forgotten_than_one_write_replaces() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "surplus", 150).await;
    assert_eq!(finds(&stack, &game, HOME, 150).await.len(), 150);
    stack.clock.advance(Duration::from_secs(121));
    let found = find_from(&stack, &game, HOME).await.expect_ok();
    let PlayerSeat { namespace_id, client, .. } = stack.seat(&found);
    let client = Client { namespace_id, client_id: client.unwrap() };
    assert_eq!(stack.store().holds(&client).await.unwrap().holds.len(), 150 - REPLACED_MAX + 1);
}

#[tokio::test]
async fn after_a_cap_was_lowered_lapsed_seats_are_freed_however_many_they_are() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "many", 150).await;
    assert_eq!(finds(&stack, &game, HOME, 150).await.len(), 150);
    let right = shared::models::rights::GameRight::of_operator(game.game_id().clone());
    let right = right.on_namespace(game.namespace_id(), stack.store()).await.unwrap();
    stack.store().set_matchmaker_config(&right, 1_000, CAP).await.unwrap();
    stack.clock.advance(Duration::from_secs(121));
    find_from(&stack, &game, HOME).await.expect_ok();
    assert_eq!(finds(&stack, &game, HOME, 20).await.len(), CAP as usize - 1);
    assert_eq!(seats_held(&stack, &game).await.len(), CAP as usize, "I12");
}

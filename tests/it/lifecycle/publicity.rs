//! A lobby that its server makes private or public.

use std::collections::BTreeSet;

use harness::{Answer, TestGame, TestStack};
use http::Method;
use serde_json::{Value, json};

use super::{CLOSED, find, find_existing, game};

const PUBLICITY: (Method, &str) = (Method::PUT, "lobbies/publicity");

async fn open_to_creators(stack: &TestStack, name: &str) -> TestGame {
    let mode = json!({ "taggable": true, "listable": true, "actions": { "create": { "enabled": true } } });
    let game = game(stack, name, mode).await;
    game.register(stack, "one", json!({})).await;
    game
}

async fn create_private(stack: &TestStack, game: &TestGame) -> Answer {
    let body = json!({ "game_mode": "arena", "region": "fra", "tags": { "map": "harbour" } });
    game.play(stack, "lobbies/create", body).await.expect_ok()
}

async fn make(stack: &TestStack, game: &TestGame, lobby_id: &str, publicity: &str) -> Answer {
    game.host(stack, lobby_id, PUBLICITY, json!({ "publicity": publicity })).await
}

/// The lobbies that the list shows six seconds later, when no instance remembers an older one.
async fn listed(stack: &TestStack, game: &TestGame) -> BTreeSet<String> {
    stack.clock.advance(std::time::Duration::from_secs(6));
    let path = "/matchmaker/lobbies/list";
    let list = stack.call(Method::GET, path, Some(&game.public), String::new()).await.expect_ok();
    let lobbies = list.body["lobbies"].as_array().into_iter().flatten();
    lobbies.filter_map(|lobby| lobby["lobby_id"].as_str()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_private_lobby_opens_when_the_friends_are_there() {
    let stack = TestStack::start().await;
    let game = open_to_creators(&stack, "doors").await;
    let created = create_private(&stack, &game).await;
    let lobby_id = created.lobby_id();
    let friend = game.join(&stack, &lobby_id).await.expect_ok();
    for seat in [&created, &friend] {
        game.connect(&stack, seat).await.expect_ok();
    }
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    assert_eq!(listed(&stack, &game).await, BTreeSet::new());

    for _ in 0..2 {
        make(&stack, &game, &lobby_id, "public").await.expect_ok();
    }
    assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), lobby_id, "it is found once it is public");
    assert_eq!(listed(&stack, &game).await, BTreeSet::from([lobby_id.clone()]));

    for _ in 0..2 {
        make(&stack, &game, &lobby_id, "private").await.expect_ok();
    }
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    assert_eq!(listed(&stack, &game).await, BTreeSet::new());
    let late = game.join(&stack, &lobby_id).await.expect_ok();
    assert_eq!(game.lobby(&stack, &lobby_id).await.taken, 4, "everybody keeps the seat");

    game.disconnect(&stack, &late).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    make(&stack, &game, &lobby_id, "public").await.expect_ok();
    let harbour = json!({ "game_modes": ["arena"], "regions": ["fra"], "tags": { "map": "harbour" } });
    assert_eq!(game.find(&stack, harbour).await.expect_ok().lobby_id(), lobby_id, "by its tags, too");
}

#[tokio::test]
async fn a_lobby_is_in_sight_only_when_it_is_neither_closed_nor_private() {
    let stack = TestStack::start().await;
    let game = open_to_creators(&stack, "both").await;
    let lobby_id = create_private(&stack, &game).await.lobby_id();
    let close = async |is_closed: bool| {
        game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": is_closed })).await.expect_ok();
    };
    let is_found = async || game.lobby(&stack, &lobby_id).await.joinable_from.is_some();
    close(true).await;
    make(&stack, &game, &lobby_id, "public").await.expect_ok();
    assert!(!is_found().await, "public, and closed");
    close(false).await;
    assert!(is_found().await);
    make(&stack, &game, &lobby_id, "private").await.expect_ok();
    close(true).await;
    close(false).await;
    assert!(!is_found().await, "reopened, and private");
    make(&stack, &game, &lobby_id, "public").await.expect_ok();
    assert!(is_found().await);

    game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    for publicity in ["private", "public"] {
        make(&stack, &game, &lobby_id, publicity).await.expect_ok();
    }
    assert!(!is_found().await, "the lobby of a server that leaves stays closed");
}

#[tokio::test]
async fn a_find_that_waits_to_create_takes_the_seat_of_a_lobby_that_opens() {
    let stack = TestStack::start().await;
    let game = open_to_creators(&stack, "opens").await;
    let public = find(&stack, &game).await.expect_ok().lobby_id();
    for _ in 0..3 {
        assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), public);
    }
    let lobby_id = create_private(&stack, &game).await.lobby_id();
    make(&stack, &game, &lobby_id, "public").await.expect_ok();
    let seats = futures_util::future::join_all((0..3).map(|_| find(&stack, &game))).await;
    let lobbies: BTreeSet<_> = seats.into_iter().map(|seat| seat.expect_ok().lobby_id()).collect();
    assert_eq!(lobbies, BTreeSet::from([lobby_id]), "I9");
}

#[tokio::test]
async fn a_lobby_that_has_ended_or_a_word_that_is_no_publicity_is_refused() {
    let stack = TestStack::start().await;
    let game = open_to_creators(&stack, "refused").await;
    let lobby_id = create_private(&stack, &game).await.lobby_id();
    for body in [json!({}), json!({ "publicity": null }), json!({ "publicity": "Public" }), Value::Null] {
        let refused = game.host(&stack, &lobby_id, PUBLICITY, body).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"));
    }
    assert!(game.lobby(&stack, &lobby_id).await.is_private);
    game.end_lobby(&stack, &lobby_id).await.expect_ok();
    let refused = make(&stack, &game, &lobby_id, "public").await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
}

//! Parties: seats of one lobby that one request takes together, all or none (I13).

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "code of tests outside of test functions")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all, stream};
use harness::{Answer, TestGame, TestStack, instance::request, new_game};
use http::Method;
use serde_json::{Value, json};
use shared::models::{
    lobby::{Lobby, Stage},
    room::Room,
    token::PlayerSeat,
};

/// Requests at once where load is steady.
const AT_ONCE: usize = 64;

/// A mode for parties up to four.
fn arena(fields: Value) -> Value {
    let mut mode = json!({
        "regions": ["fra"], "max_players": 10, "party_size_max": 4, "reservation_seconds": 60, "taggable": true,
        "allow_dynamic_max_players": true, "actions": { "create": { "enabled": true } },
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        mode[field] = value.clone();
    }
    json!({ "arena": mode })
}

async fn game(stack: &TestStack, name: &str, fields: Value) -> TestGame {
    stack.make_game(name, arena(fields), 4_000, 4_000).await
}

fn party(size: u32) -> Value {
    json!({ "game_modes": ["arena"], "party_size": size })
}

/// The seats of a response: one, or those of a party.
fn seats(stack: &TestStack, answer: &Answer) -> Vec<PlayerSeat> {
    let alone = || vec![answer.body["player"].clone()];
    let players = answer.body["players"].as_array().cloned().unwrap_or_else(alone);
    players.iter().map(|player| stack.seat_of(player["token"].as_str().unwrap())).collect()
}

fn names(seats: &[PlayerSeat]) -> BTreeSet<(String, String)> {
    seats.iter().map(|seat| (seat.lobby_id.to_string(), seat.seat_id.to_string())).collect()
}

/// The seats that the tables hold.
fn held(lobbies: &[Lobby]) -> BTreeSet<(String, String)> {
    let of = |lobby: &Lobby| {
        let id = lobby.lobby_id.to_string();
        lobby
            .reserved
            .keys()
            .chain(lobby.connected.keys())
            .map(move |seat| (id.clone(), seat.to_string()))
            .collect()
    };
    lobbies.iter().flat_map(|lobby| -> Vec<_> { of(lobby) }).collect()
}

/// What parties were answered, and that the tables hold exactly their seats (I1, I4, I13).
async fn check(stack: &TestStack, game: &TestGame, answers: &[(u32, Answer)]) -> Vec<Lobby> {
    let mut answered = BTreeSet::new();
    for (size, answer) in answers.iter().filter(|(_, answer)| answer.status.is_success()) {
        let seats = seats(stack, answer);
        assert_eq!(seats.len(), *size as usize, "I13: a party is whole");
        let lobbies: BTreeSet<_> = seats.iter().map(|seat| seat.lobby_id.clone()).collect();
        assert_eq!(lobbies.len(), 1, "I13: a party is in one lobby");
        let before = answered.len();
        answered.extend(names(&seats));
        assert_eq!(answered.len(), before + seats.len(), "each seat is one player's");
    }
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    assert_eq!(held(&lobbies), answered);
    for lobby in &lobbies {
        assert_eq!(lobby.taken as usize, lobby.reserved.len() + lobby.connected.len());
        assert!(lobby.taken <= lobby.max_players, "I1: {lobby:?}");
    }
    lobbies
}

#[tokio::test]
async fn a_party_gets_seats_of_one_lobby_and_a_token_for_each() {
    let stack = TestStack::start().await;
    let game = game(&stack, "together", json!({})).await;
    let body =
        json!({ "game_modes": ["arena"], "party_size": 3, "players_data": [{ "name": "Ada" }, null, 7] });
    let answer = game.find(&stack, body).await.expect_ok();
    let found = seats(&stack, &answer);
    assert_eq!((found.len(), names(&found).len()), (3, 3));
    assert_eq!(answer.body["players"][0], answer.body["player"], "the first is the leader");
    assert_eq!(answer.body["lobby"]["player"], answer.body["player"]);
    let first = found[0].seat_id.to_string();
    let lobby_id = answer.lobby_id();
    for (nth, player) in answer.body["players"].as_array().unwrap().iter().enumerate() {
        let connect = json!({ "player_token": player["token"], "details": true });
        let connected =
            game.host(&stack, &lobby_id, (Method::POST, "players/connected"), connect).await.expect_ok();
        let mut expected =
            json!({ "player_id": found[nth].seat_id, "generation": 0, "party_id": first, "party_size": 3 });
        if let Some(data) =
            [json!({ "name": "Ada" }), Value::Null, json!(7)].get(nth).filter(|data| !data.is_null())
        {
            expected["player_data"] = data.clone();
        }
        assert_eq!(connected.body, expected);
    }
    let lobby = game.lobby(&stack, &lobby_id).await;
    assert_eq!((lobby.taken, lobby.connected.len()), (3, 3));
    // The next party fits, and so does a player alone.
    assert_eq!(game.find(&stack, party(4)).await.expect_ok().lobby_id(), lobby_id);
    assert_eq!(game.find(&stack, party(1)).await.expect_ok().lobby_id(), lobby_id);
    assert_ne!(game.find(&stack, party(3)).await.expect_ok().lobby_id(), lobby_id, "two seats are free");
    assert_eq!(game.find(&stack, party(2)).await.expect_ok().lobby_id(), lobby_id, "the hole is filled");
}

#[tokio::test]
async fn a_player_alone_is_answered_as_where_no_parties_are() {
    let stack = TestStack::start().await;
    let game = game(&stack, "alone", json!({})).await;
    for body in
        [json!({ "game_modes": ["arena"] }), party(1), json!({ "game_modes": ["arena"], "party_size": null })]
    {
        let answer = game.find(&stack, body).await.expect_ok();
        let fields: Vec<_> = answer.body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["lobby", "player", "ports"]);
        let seat = stack.seat(&answer);
        assert_eq!((seat.membership, seat.data), (None, None));
    }
}

#[tokio::test]
async fn a_party_larger_than_its_mode_seats_is_refused_with_the_largest() {
    let stack = TestStack::start().await;
    let refused = async |game: &TestGame, operation: &str, body: Value| {
        let answer = game.play(&stack, &format!("lobbies/{operation}"), body).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_PARTY_TOO_LARGE"), "{}", answer.body);
        answer.body["metadata"]["max"].clone()
    };
    let usual = game(&stack, "usual", json!({})).await;
    assert_eq!(refused(&usual, "find", party(5)).await, 4);
    let mut small = party(4);
    small["max_players"] = 3.into();
    assert_eq!(refused(&usual, "find", small).await, 3, "no lobby of the request's size holds four");
    let create = json!({ "game_mode": "arena", "party_size": 5 });
    assert_eq!(refused(&usual, "create", create).await, 4);
    let lobby_id = usual.find(&stack, party(1)).await.expect_ok().lobby_id();
    assert_eq!(refused(&usual, "join", json!({ "lobby_id": lobby_id, "party_size": 5 })).await, 4);
    let singles =
        stack.make_game("singles", json!({ "arena": { "regions": ["fra"], "max_players": 10 } }), 9, 9).await;
    assert_eq!(refused(&singles, "find", party(2)).await, 1, "a mode seats no parties unless it says so");
    let mut new = new_game("limited", arena(json!({})), 9);
    new.namespaces[0].max_players_per_client = 3;
    let limited = stack.make_game_of(new, 9).await;
    assert_eq!(refused(&limited, "find", party(4)).await, 3, "an address may hold three seats");
    assert!(stack.all_lobbies(limited.namespace_id()).await.is_empty());
    limited.find(&stack, party(3)).await.expect_ok();
}

#[tokio::test]
async fn bad_sizes_and_data_of_other_players_are_refused() {
    let stack = TestStack::start().await;
    let game = game(&stack, "bad", json!({})).await;
    let large = "x".repeat(511);
    for (fields, problem) in [
        (json!({ "party_size": 0 }), "`party_size`: a number of players, 1 to 16, is needed"),
        (json!({ "party_size": 17 }), "`party_size`: a number of players, 1 to 16, is needed"),
        (json!({ "party_size": "2" }), "`party_size`: a number of players, 1 to 16, is needed"),
        (json!({ "party_size": 2.5 }), "`party_size`: a number of players, 1 to 16, is needed"),
        (json!({ "party_size": 2, "players_data": [1] }), "`players_data`: as many elements as `party_size`"),
        (json!({ "players_data": [1] }), "`players_data`: as many elements as `party_size`"),
        (json!({ "party_size": 2, "players_data": { "a": 1 } }), "`players_data`: an array is needed"),
        (json!({ "party_size": 2, "players_data": [1, 2], "player_data": 1 }), "and no `player_data`"),
        (json!({ "party_size": 2, "players_data": [1, large] }), "`players_data[1]`: larger than 512 bytes"),
    ] {
        let mut body = json!({ "game_modes": ["arena"] });
        for (field, value) in fields.as_object().unwrap() {
            body[field] = value.clone();
        }
        let answer = game.find(&stack, body).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{fields}");
        let message = answer.body["message"].as_str().unwrap().to_owned();
        assert!(message.contains(problem), "{fields}: {message}");
    }
}

/// Sizes 1 to 4 in an order that looks random and repeats in each run.
fn sizes(count: usize) -> Vec<u32> {
    let mut state = 9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (state >> 24) % 4
    };
    (0..count).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_finds_of_random_parties_are_seated_whole() {
    let stack = TestStack::start().await;
    let game = game(&stack, "random", json!({})).await;
    let finds = stream::iter(sizes(2_000)).map(async |size| (size, game.find(&stack, party(size)).await));
    let answers: Vec<_> = finds.buffer_unordered(AT_ONCE).collect().await;
    let refused: Vec<_> = answers.iter().filter(|(_, answer)| !answer.status.is_success()).collect();
    assert!(
        refused.is_empty(),
        "{:?}",
        refused.iter().map(|(_, answer)| answer.refusal()).collect::<Vec<_>>()
    );
    check(&stack, &game, &answers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_cap_parties_are_seated_whole_or_refused() {
    let stack = TestStack::start().await;
    let game = stack.make_game("capped", arena(json!({})), 20, 1_000).await;
    let finds = sizes(300).into_iter().map(async |size| (size, game.find(&stack, party(size)).await));
    let answers = join_all(finds).await;
    let refused = answers.iter().filter(|(_, answer)| !answer.status.is_success());
    let codes: BTreeSet<_> = refused.map(|(_, answer)| answer.refusal().1.to_owned()).collect();
    assert_eq!(codes, ["MATCHMAKER_TOO_MANY_LOBBIES".to_owned()].into());
    assert_eq!(check(&stack, &game, &answers).await.len(), 20, "I2");
    // A find that is refused before the lobby of its position comes leaves seats there out of sight, until
    // the first one lapses.
    stack.clock.advance(Duration::from_secs(61));
    let mut seated = 0;
    for size in [4, 3, 2, 1] {
        while game.find(&stack, party(size)).await.status.is_success() {
            seated += size;
        }
    }
    assert_eq!(seated, 200, "no seat stays out of sight");
}

#[tokio::test]
async fn a_party_takes_over_seats_that_lapsed() {
    let stack = TestStack::start().await;
    let game = stack.make_game("lapsed", arena(json!({ "max_players": 4 })), 1, 1).await;
    let stays = game.find(&stack, party(1)).await.expect_ok();
    game.connect(&stack, &stays).await.expect_ok();
    let lapses = game.find(&stack, party(3)).await.expect_ok();
    assert_eq!(lapses.lobby_id(), stays.lobby_id());
    let refused = game.find(&stack, party(2)).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
    stack.clock.advance(Duration::from_secs(61));
    let lobby_id: shared::models::ids::LobbyId = stays.lobby_id().parse().unwrap();
    let seen = game.lobby(&stack, &stays.lobby_id()).await;
    stack.store().note_room(&seen, stack.clock.now()).await.unwrap();
    let found = seats(&stack, &game.find(&stack, party(2)).await.expect_ok());
    let lobby = game.lobby(&stack, lobby_id.as_str()).await;
    assert_eq!((lobby.taken, lobby.reserved.len(), lobby.connected.len()), (3, 2, 1));
    assert_eq!(names(&found), held(&[Lobby { connected: BTreeMap::new(), ..lobby.clone() }]));
    let late = game.connect(&stack, &lapses).await;
    assert_eq!(late.refusal(), (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED"));
}

#[tokio::test]
async fn a_lobby_that_becomes_ready_at_last_stays_in_sight_of_parties() {
    let stack = TestStack::start().await;
    let game = game(&stack, "late", json!({})).await;
    let lobby_id = game.find(&stack, party(2)).await.expect_ok().lobby_id();
    let ready = game.lobby(&stack, &lobby_id).await;
    // As another instance saw it before, by a clock by which it was too late.
    let seen = Lobby { stage: Stage::Starting, ..ready.clone() };
    let now = stack.clock.now() + Duration::from_secs(3_600);
    assert_eq!((seen.room_at(now), seen.taken), (None, ready.taken));
    stack.store().note_room(&seen, now).await.unwrap();
    assert_eq!(game.lobby(&stack, &lobby_id).await.room, ready.room);
    assert!(ready.room.is_some());
}

#[tokio::test]
async fn the_index_for_parties_shows_lobbies_while_they_have_room_for_two() {
    let stack = TestStack::start().await;
    let game = game(&stack, "room", json!({ "max_players": 5 })).await;
    let first = game.find(&stack, party(2)).await.expect_ok();
    let lobby_id = first.lobby_id();
    let room = async || game.lobby(&stack, &lobby_id).await.room.map(Room::seats);
    assert_eq!(room().await, Some(3));
    game.find(&stack, party(2)).await.expect_ok();
    assert_eq!(room().await, None, "one seat is free");
    game.disconnect(&stack, &first).await.expect_ok();
    assert_eq!(room().await, Some(2), "a seat was left");
    let third = game.find(&stack, party(2)).await.expect_ok();
    assert_eq!((third.lobby_id(), room().await), (lobby_id.clone(), None));
    for player in third.body["players"].as_array().unwrap() {
        let left = json!({ "player_token": player["token"] });
        game.host(&stack, &lobby_id, (Method::POST, "players/disconnected"), left).await.expect_ok();
    }
    assert_eq!(room().await, Some(2));
    game.host(&stack, &lobby_id, (Method::PUT, "lobbies/closed"), json!({ "is_closed": true }))
        .await
        .expect_ok();
    assert_eq!(room().await, None, "no find sees a closed lobby");
    assert_ne!(game.find(&stack, party(2)).await.expect_ok().lobby_id(), lobby_id);
    game.host(&stack, &lobby_id, (Method::PUT, "lobbies/closed"), json!({ "is_closed": false }))
        .await
        .expect_ok();
    assert_eq!(room().await, Some(2));
}

#[tokio::test]
async fn a_party_under_one_key_is_repeated_whole() {
    let stack = TestStack::start().await;
    let game = game(&stack, "repeated", json!({})).await;
    let ask = async |key: &str, body: Value| game.play_keyed(&stack, "lobbies/find", key, body).await;
    let data = json!({ "game_modes": ["arena"], "party_size": 3, "players_data": [1, 2, 3] });
    let first = ask("one", data.clone()).await.expect_ok();
    let again = ask("one", data).await.expect_ok();
    assert_eq!(first.body, again.body);
    assert_eq!(seats(&stack, &again).iter().filter(|seat| seat.data.is_some()).count(), 3);
    assert_eq!(ask("one", party(2)).await.refusal(), (409, "API_IDEMPOTENCY_MISMATCH"));
    assert_eq!(held(&stack.all_lobbies(game.namespace_id()).await), names(&seats(&stack, &first)));
}

#[tokio::test]
async fn a_party_counts_with_each_seat_for_its_address_until_that_is_left() {
    let stack = TestStack::start().await;
    let mut new = new_game("counted", arena(json!({})), 9);
    new.namespaces[0].max_players_per_client = 4;
    let game = stack.make_game_of(new, 9).await;
    let three = game.find(&stack, party(3)).await.expect_ok();
    let at_cap = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    assert_eq!(game.find(&stack, party(2)).await.refusal(), at_cap, "I12");
    game.find(&stack, party(1)).await.expect_ok();
    assert_eq!(game.find(&stack, party(1)).await.refusal(), at_cap, "I12");
    for player in &three.body["players"].as_array().unwrap()[1..] {
        let leave = json!({ "player_token": player["token"] });
        game.play(&stack, "players/leave", leave).await.expect_ok();
    }
    let two = game.find(&stack, party(2)).await.expect_ok();
    assert_eq!(two.lobby_id(), three.lobby_id());
    assert_eq!(game.find(&stack, party(1)).await.refusal(), at_cap, "I12");
    assert_eq!(game.lobby(&stack, &two.lobby_id()).await.taken, 4);
}

#[tokio::test]
async fn parties_enter_and_create_lobbies_whole() {
    let stack = TestStack::start().await;
    let game = game(&stack, "doors", json!({ "max_players": 4, "max_players_direct": 5 })).await;
    let created = game.play(&stack, "lobbies/create", json!({ "game_mode": "arena", "party_size": 3 })).await;
    let created = created.expect_ok();
    assert_eq!(names(&seats(&stack, &created)).len(), 3);
    let join = async |size: u32| {
        game.play(&stack, "lobbies/join", json!({ "lobby_id": created.lobby_id(), "party_size": size })).await
    };
    assert_eq!(join(3).await.refusal(), (400, "MATCHMAKER_LOBBY_FULL"));
    let joined = join(2).await.expect_ok();
    assert_eq!(game.lobby(&stack, &joined.lobby_id()).await.taken, 5);
}

#[tokio::test]
async fn parties_fill_a_lobby_beyond_what_players_alone_may() {
    let stack = TestStack::start().await;
    let game = game(&stack, "beyond", json!({ "max_players": 3, "max_players_party": 5 })).await;
    let two = game.find(&stack, party(2)).await.expect_ok();
    let three = game.find(&stack, party(3)).await.expect_ok();
    assert_eq!(two.lobby_id(), three.lobby_id());
    assert_ne!(game.find(&stack, party(1)).await.expect_ok().lobby_id(), two.lobby_id());
    let lobby = game.lobby(&stack, &two.lobby_id()).await;
    assert_eq!((lobby.taken, lobby.max_players), (5, 3));
}

#[tokio::test]
async fn an_explanation_counts_lobbies_that_are_too_full_for_the_party() {
    let stack = TestStack::start().await;
    let game = game(&stack, "explained", json!({ "max_players": 4 })).await;
    game.find(&stack, party(3)).await.expect_ok();
    let bearer = format!("Bearer {}", game.public);
    let headers = [("authorization", bearer.as_str()), ("muster-explain", "1")];
    // The index still shows room for three: the lobby had it when it was created.
    let seen = stack.all_lobbies(game.namespace_id()).await.remove(0);
    let stale = Lobby { taken: 1, reserved: BTreeMap::new(), ..seen.clone() };
    assert_eq!(stale.room_at(stack.clock.now()).map(Room::seats), Some(4));
    let put = serde_dynamo::to_item(&Lobby { room: stale.room_at(stack.clock.now()), ..seen }).unwrap();
    let table = &stack.store().tables().lobbies;
    stack.store().client().put_item().table_name(table).set_item(Some(put)).send().await.unwrap();
    let found = stack.instance().call(&request(&headers, &party(2))).await.unwrap();
    let explained = serde_json::to_value(found.explain).unwrap();
    assert_eq!(explained["refused"], json!({ "too_full": 1 }), "{explained}");
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    assert!(
        lobbies.iter().all(|lobby| lobby.taken != 3 || lobby.room.is_none()),
        "whom it misled corrected it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_parties_at_one_instant_share_lobbies() {
    let stack = TestStack::start().await;
    for round in 0..3 {
        let game = game(&stack, &format!("burst-{round}"), json!({})).await;
        let finds = sizes(100).into_iter().map(async |size| (size, game.find(&stack, party(size)).await));
        let answers = join_all(finds).await;
        assert!(answers.iter().all(|(_, answer)| answer.status.is_success()));
        check(&stack, &game, &answers).await;
    }
}

//! Players come back to the seat that they had, and of a seat's tokens the newest alone connects (I7).

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use futures_util::future::{join, join_all};
use harness::{Answer, TestGame, TestStack, interference::Crashing, new_game};
use http::Method;
use serde_json::{Value, json};
use shared::models::{client::Client, lobby::Lobby, standing::Standing, token::PlayerSeat};

use super::{CLOSED, call_over, find, find_existing, game};

const CONNECTED: (Method, &str) = (Method::POST, "players/connected");
const DISCONNECTED: (Method, &str) = (Method::POST, "players/disconnected");
const REMOVED: (u16, &str) = (400, "MATCHMAKER_PLAYER_REMOVED");
const EXPIRED: (u16, &str) = (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED");
const STOPPED: (u16, &str) = (400, "MATCHMAKER_LOBBY_STOPPED");
const TWICE: (u16, &str) = (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED");
const NO_LOBBY: (u16, &str) = (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
/// How long seats are kept, and reserved.
const KEPT: Duration = Duration::from_secs(30);
const RESERVED: Duration = Duration::from_secs(120);

async fn start(name: &str, mode: Value) -> (TestStack, TestGame) {
    let stack = TestStack::start().await;
    let game = game(&stack, name, mode).await;
    game.register(&stack, "one", json!({ "capacity": 9, "lease_seconds": 0 })).await;
    (stack, game)
}

async fn start_keeping(name: &str) -> (TestStack, TestGame) {
    start(name, json!({ "max_players": 2, "keep_seconds": 30 })).await
}

/// A player in the lobby.
async fn playing(stack: &TestStack, game: &TestGame) -> Answer {
    let seat = find(stack, game).await.expect_ok();
    game.connect(stack, &seat).await.expect_ok();
    seat
}

async fn by_token(stack: &TestStack, operation: &str, seat: &Answer) -> Answer {
    let body = json!({ "player_token": seat.body["player"]["token"] }).to_string();
    stack.call(Method::POST, &format!("/matchmaker/players/{operation}"), None, body).await
}

async fn rejoin(stack: &TestStack, seat: &Answer) -> Answer {
    by_token(stack, "rejoin", seat).await
}

async fn disconnect_for(stack: &TestStack, game: &TestGame, seat: &Answer, secs: u32) {
    let body = json!({ "player_token": seat.body["player"]["token"], "keep_seconds": secs });
    game.host(stack, &seat.lobby_id(), DISCONNECTED, body).await.expect_ok();
}

async fn everyone(stack: &TestStack, game: &TestGame, lobby_id: &str, body: Value) -> Answer {
    let mut all = json!({ "everyone": true });
    all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    game.host(stack, lobby_id, DISCONNECTED, all).await
}

/// Seats taken, reserved and connected.
fn seats(lobby: &Lobby) -> (u32, usize, usize) {
    (lobby.taken, lobby.reserved.len(), lobby.connected.len())
}

async fn seats_of(stack: &TestStack, game: &TestGame, seat: &Answer) -> (u32, usize, usize) {
    seats(&game.lobby(stack, &seat.lobby_id()).await)
}

#[tokio::test]
async fn a_reload_before_connecting_has_the_same_seat_and_token_and_writes_nothing() {
    let (stack, game) = start("reload", json!({})).await;
    let data = json!({ "game_modes": ["arena"], "regions": ["fra"], "player_data": { "name": "Ada" } });
    let found = game.find(&stack, data).await.expect_ok();
    let before = game.lobby(&stack, &found.lobby_id()).await;
    for _ in 0..3 {
        assert_eq!(rejoin(&stack, &found).await.expect_ok().body, found.body);
    }
    assert_eq!(game.lobby(&stack, &found.lobby_id()).await, before);
    let player = game.connect_with_details(&stack, &found).await.expect_ok();
    assert_eq!(
        (&player.body["generation"], &player.body["player_data"]),
        (&json!(0), &json!({ "name": "Ada" }))
    );
    assert_eq!(player.body.get("replaced"), None);
    // It extends nothing.
    let lapses = find(&stack, &game).await.expect_ok();
    stack.clock.advance(RESERVED - Duration::from_millis(1));
    rejoin(&stack, &lapses).await.expect_ok();
    stack.clock.advance(Duration::from_millis(1));
    assert_eq!(rejoin(&stack, &lapses).await.refusal(), EXPIRED);
}

#[tokio::test]
async fn a_player_who_reloads_during_play_replaces_the_older_connection() {
    let (stack, game) = start("replace", json!({ "max_players": 2 })).await;
    let old = playing(&stack, &game).await;
    let new = rejoin(&stack, &old).await.expect_ok();
    assert_ne!(new.body["player"], old.body["player"]);
    assert_eq!(
        (&new.body["ports"], &new.body["lobby"]["region"]),
        (&old.body["ports"], &old.body["lobby"]["region"])
    );
    assert_eq!(
        seats_of(&stack, &game, &old).await,
        (1, 0, 1),
        "it stays connected until the new one connects"
    );
    let again = rejoin(&stack, &new).await.expect_ok();
    assert_eq!(again.body, new.body, "at most one token waits");
    assert_eq!(game.connect_with_details(&stack, &old).await.refusal(), REMOVED, "I7");
    let player = game.connect_with_details(&stack, &new).await.expect_ok().body;
    assert_eq!((&player["generation"], &player["replaced"]), (&json!(1), &json!(true)));
    assert_eq!(player["player_id"], json!(stack.seat(&old).seat_id));
    let twice = game.connect_with_details(&stack, &new).await;
    assert_eq!(twice.refusal(), TWICE);
    assert_eq!(
        (&twice.body["metadata"]["generation"], &twice.body["metadata"]["replaced"]),
        (&json!(1), &json!(true))
    );
    // The server reports the older connection's end late.
    game.disconnect(&stack, &old).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &old).await, (1, 0, 1), "I4");
    game.disconnect(&stack, &new).await.expect_ok();
    assert_eq!(game.connect_with_details(&stack, &new).await.refusal(), STOPPED, "it was empty");
}

#[tokio::test]
async fn a_disconnect_while_a_newer_token_waits_reserves_the_seat_for_it() {
    let (stack, game) = start("waits", json!({ "max_players": 2 })).await;
    let (old, stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    let new = rejoin(&stack, &old).await.expect_ok();
    for _ in 0..2 {
        game.disconnect(&stack, &old).await.expect_ok();
    }
    assert_eq!(seats_of(&stack, &game, &old).await, (2, 1, 1), "I4");
    assert_eq!(find_existing(&stack, &game).await.refusal(), NO_LOBBY, "it counts as taken");
    stack.clock.advance(RESERVED - Duration::from_millis(1));
    let player = game.connect_with_details(&stack, &new).await.expect_ok().body;
    assert_eq!((player.get("replaced"), &player["generation"]), (None, &json!(1)));
    assert_eq!(seats_of(&stack, &game, &stays).await, (2, 0, 2));
}

#[tokio::test]
async fn a_player_who_came_back_and_is_reported_gone_first_does_not_connect_afterwards() {
    let (stack, game) = start_keeping("gone-first").await;
    let (seat, stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    // Over an older connection that is still open, and into a seat that is kept.
    for reserved in [0, 1] {
        let lost = rejoin(&stack, &seat).await.expect_ok();
        for _ in 0..2 {
            game.disconnect(&stack, &lost).await.expect_ok();
        }
        assert_eq!(game.connect_with_details(&stack, &lost).await.refusal(), REMOVED);
        assert_eq!(seats_of(&stack, &game, &stays).await, (2, reserved, 2 - reserved), "I4");
        let back = rejoin(&stack, &lost).await.expect_ok();
        assert_ne!(back.body["player"], lost.body["player"]);
        game.connect_with_details(&stack, &back).await.expect_ok();
        game.disconnect(&stack, &back).await.expect_ok();
    }
    // Nothing is longer: the seat lapses as it would have.
    let lost = rejoin(&stack, &seat).await.expect_ok();
    stack.clock.advance(KEPT);
    game.disconnect(&stack, &lost).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &stays).await, (1, 0, 1));
    assert_eq!(game.connect_with_details(&stack, &lost).await.refusal(), REMOVED);
}

#[tokio::test]
async fn of_a_connect_and_its_disconnect_at_once_no_connection_stays() {
    let (stack, game) = start("at-once", json!({ "max_players": 40, "keep_seconds": 30 })).await;
    let mut seats = Vec::new();
    for _ in 0..20 {
        seats.push(playing(&stack, &game).await);
    }
    for seat in &seats {
        game.disconnect(&stack, seat).await.expect_ok();
    }
    let back = join_all(seats.iter().map(|seat| rejoin(&stack, seat))).await;
    let both = back.iter().map(async |seat| {
        let (connected, gone) =
            join(game.connect_with_details(&stack, seat), game.disconnect(&stack, seat)).await;
        assert!(connected.status == 200 || connected.refusal() == REMOVED, "{}", connected.body);
        gone.expect_ok();
    });
    join_all(both).await;
    assert_eq!(seats_of(&stack, &game, &seats[0]).await, (20, 20, 0), "I4");
}

#[tokio::test]
async fn a_seat_is_kept_for_its_player_and_no_longer() {
    let (stack, game) = start_keeping("kept").await;
    let (back, late) = (playing(&stack, &game).await, playing(&stack, &game).await);
    for seat in [&back, &late] {
        for _ in 0..2 {
            game.disconnect(&stack, seat).await.expect_ok();
        }
    }
    assert_eq!(seats_of(&stack, &game, &back).await, (2, 2, 0));
    assert_eq!(find_existing(&stack, &game).await.refusal(), NO_LOBBY);
    assert_eq!(game.connect_with_details(&stack, &back).await.refusal(), REMOVED, "I7: the token is used");
    stack.clock.advance(KEPT - Duration::from_millis(1));
    let again = rejoin(&stack, &back).await.expect_ok();
    assert_eq!(game.connect_with_details(&stack, &again).await.expect_ok().body["generation"], 1);
    stack.clock.advance(Duration::from_millis(1));
    assert_eq!(rejoin(&stack, &late).await.refusal(), EXPIRED);
    let taker = find_existing(&stack, &game).await.expect_ok();
    assert_eq!(taker.lobby_id(), late.lobby_id(), "I4: the seat is taken over");
    assert_eq!(rejoin(&stack, &late).await.refusal(), REMOVED);
    assert_eq!(game.connect_with_details(&stack, &late).await.refusal(), REMOVED, "I7");
    let lobby = game.lobby(&stack, &late.lobby_id()).await;
    assert_eq!(lobby.generations.map(|tokens| tokens.len()), Some(1), "tokens go with their seat");
}

#[tokio::test]
async fn a_full_lobby_comes_into_sight_when_its_kept_seat_lapses() {
    let (stack, game) = start_keeping("sight").await;
    let (goes, stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    let pool = game.pool("arena", "fra");
    let in_sight = || async { stack.store().candidates(&pool, 1, stack.clock.now(), 9).await.unwrap().len() };
    stack.clock.advance(Duration::from_secs(3_600));
    game.disconnect(&stack, &goes).await.expect_ok();
    assert_eq!(in_sight().await, 0);
    stack.clock.advance(KEPT);
    assert_eq!(in_sight().await, 1, "I4");
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), stays.lobby_id());
    // A closed one does not.
    let closed = playing(&stack, &game).await;
    game.host(&stack, &closed.lobby_id(), CLOSED, json!({ "is_closed": true })).await.expect_ok();
    game.disconnect(&stack, &closed).await.expect_ok();
    assert_eq!(game.lobby(&stack, &closed.lobby_id()).await.joinable_from, None, "I6");
}

#[tokio::test]
async fn the_server_says_for_how_long_a_seat_is_kept() {
    let (stack, game) = start("says", json!({ "max_players": 4 })).await;
    let (kept, freed, stays) =
        (playing(&stack, &game).await, playing(&stack, &game).await, playing(&stack, &game).await);
    disconnect_for(&stack, &game, &kept, 600).await;
    disconnect_for(&stack, &game, &freed, 0).await;
    assert_eq!(seats_of(&stack, &game, &stays).await, (2, 1, 1));
    assert_eq!(rejoin(&stack, &freed).await.refusal(), REMOVED);
    stack.clock.advance(Duration::from_millis(599_999));
    rejoin(&stack, &kept).await.expect_ok();
    let (stack, game) = start_keeping("overridden").await;
    let (freed, _stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    disconnect_for(&stack, &game, &freed, 0).await;
    assert_eq!(rejoin(&stack, &freed).await.refusal(), REMOVED);
}

#[tokio::test]
async fn eight_hours_count_from_the_first_connect() {
    let (stack, game) = start_keeping("hours").await;
    let _stays = playing(&stack, &game).await;
    let seat = playing(&stack, &game).await;
    let connected_until = stack.clock.now() + Duration::from_secs(8 * 3_600);
    stack.clock.advance(Duration::from_secs(8 * 3_600 - 10));
    game.disconnect(&stack, &seat).await.expect_ok();
    let lobby = game.lobby(&stack, &seat.lobby_id()).await;
    assert_eq!(lobby.reserved.values().copied().collect::<Vec<_>>(), [connected_until]);
    let back = rejoin(&stack, &seat).await.expect_ok();
    game.connect_with_details(&stack, &back).await.expect_ok();
    let lobby = game.lobby(&stack, &seat.lobby_id()).await;
    // A token has whole seconds.
    assert_eq!(lobby.connected[&stack.seat(&seat).seat_id].secs(), connected_until.secs(), "I4");
    stack.clock.advance(Duration::from_secs(10));
    assert_eq!(rejoin(&stack, &back).await.refusal(), EXPIRED);
    stack.clock.advance(Duration::from_secs(3_600));
    assert_eq!(rejoin(&stack, &back).await.refusal(), EXPIRED, "the token expired with the first one");
}

#[tokio::test]
async fn the_oldest_token_brings_its_player_back_too() {
    let (stack, game) = start_keeping("oldest").await;
    let _stays = playing(&stack, &game).await;
    let oldest = playing(&stack, &game).await;
    for generation in 1..4 {
        let next = rejoin(&stack, &oldest).await.expect_ok();
        assert_eq!(game.connect_with_details(&stack, &next).await.expect_ok().body["generation"], generation);
        assert_eq!(game.connect_with_details(&stack, &oldest).await.refusal(), REMOVED, "I7");
    }
}

#[tokio::test]
async fn a_lobby_that_ended_and_a_seat_that_is_free_bring_nobody_back() {
    let (stack, game) = start_keeping("over").await;
    let (removed, ended) = (playing(&stack, &game).await, playing(&stack, &game).await);
    let body = json!({ "player_token": removed.body["player"]["token"] });
    game.disconnect(&stack, &removed).await.expect_ok();
    game.host(&stack, &removed.lobby_id(), (Method::POST, "players/remove"), body).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &ended).await, (1, 0, 1), "a kept seat is removed like any other");
    assert_eq!(rejoin(&stack, &removed).await.refusal(), REMOVED);
    game.disconnect(&stack, &ended).await.expect_ok();
    game.end_lobby(&stack, &ended.lobby_id()).await.expect_ok();
    assert_eq!(rejoin(&stack, &ended).await.refusal(), STOPPED);
    let forged = json!({ "player_token": "player_forged" }).to_string();
    let refused = stack.call(Method::POST, "/matchmaker/players/rejoin", None, forged).await;
    assert_eq!(refused.refusal(), (400, "TOKEN_INVALID"));
}

#[tokio::test]
async fn a_player_who_leaves_while_connected_is_not_waited_for() {
    let (stack, game) = start_keeping("leaves").await;
    let (leaves, stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    for _ in 0..2 {
        by_token(&stack, "leave", &leaves).await.expect_ok();
    }
    assert_eq!(seats_of(&stack, &game, &stays).await, (2, 0, 2));
    game.disconnect(&stack, &leaves).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &stays).await, (1, 0, 1), "nothing is kept");
    // A page that reloads may have said so before: the player is back.
    let back = playing(&stack, &game).await;
    by_token(&stack, "leave", &back).await.expect_ok();
    let new = rejoin(&stack, &back).await.expect_ok();
    by_token(&stack, "leave", &back).await.expect_ok();
    game.disconnect(&stack, &back).await.expect_ok();
    game.connect_with_details(&stack, &new).await.expect_ok();
    // A kept seat is given up at once.
    game.disconnect(&stack, &new).await.expect_ok();
    by_token(&stack, "leave", &new).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &stays).await, (1, 0, 1));
    assert_eq!(rejoin(&stack, &new).await.refusal(), REMOVED);
}

#[tokio::test]
async fn after_a_crash_of_its_server_everyone_comes_back_to_the_same_match() {
    let stack = TestStack::start().await;
    let game = game(&stack, "crashed", json!({ "max_players": 100, "max_players_direct": 100 })).await;
    let process = json!({ "capacity": 9, "start_id": "match-1" });
    game.register(&stack, "one", process.clone()).await;
    let mut players = Vec::new();
    for _ in 0..95 {
        players.push(playing(&stack, &game).await);
    }
    let (waits, leaves) = (find(&stack, &game).await.expect_ok(), &players[94]);
    let lobby_id = waits.lobby_id();
    let again = rejoin(&stack, &players[0]).await.expect_ok();
    // The next process kept the start's name and the state of the match, and no token.
    game.register(&stack, "one", process).await;
    everyone(&stack, &game, &lobby_id, json!({ "keep_seconds": 60 })).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &waits).await, (96, 96, 0), "I4");
    by_token(&stack, "leave", leaves).await.expect_ok();
    everyone(&stack, &game, &lobby_id, json!({ "keep_seconds": 60 })).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &waits).await, (95, 95, 0), "a retry is harmless");
    stack.clock.advance(Duration::from_millis(59_999));
    for player in &players[1..94] {
        let back = rejoin(&stack, player).await.expect_ok();
        assert_eq!(back.lobby_id(), lobby_id);
        game.connect_with_details(&stack, &back).await.expect_ok();
    }
    game.connect_with_details(&stack, &again).await.expect_ok();
    game.connect_with_details(&stack, &waits).await.expect_ok();
    assert_eq!(seats_of(&stack, &game, &waits).await, (95, 0, 95));
    // Without a time, and in a mode that keeps none, all are free.
    everyone(&stack, &game, &lobby_id, json!({})).await.expect_ok();
    assert_eq!(game.lobby(&stack, &lobby_id).await.taken, 0);
}

#[tokio::test]
async fn a_disconnect_is_of_one_player_or_of_everyone() {
    let (stack, game) = start_keeping("either").await;
    let seat = playing(&stack, &game).await;
    let token = &seat.body["player"]["token"];
    let cases = [
        (json!({}), "missing field `player_token`"),
        (json!({ "everyone": false }), "missing field `player_token`"),
        (json!({ "everyone": true, "player_token": token }), "everyone"),
        (json!({ "player_token": token, "keep_seconds": 601 }), "keep_seconds"),
        (json!({ "player_token": token, "keep_seconds": -1 }), "keep_seconds"),
        (json!({ "everyone": true, "keep_seconds": 1.5 }), "keep_seconds"),
        (json!({ "everyone": 1 }), "everyone"),
    ];
    for (body, named) in cases {
        let refused = game.host(&stack, &seat.lobby_id(), DISCONNECTED, body.clone()).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"), "{body}");
        assert!(refused.body["message"].as_str().unwrap().contains(named), "{body}: {}", refused.body);
    }
    assert_eq!(seats_of(&stack, &game, &seat).await, (1, 0, 1));
    // As every request without its token is refused.
    let of_connect = game.host(&stack, &seat.lobby_id(), CONNECTED, json!({})).await;
    let of_disconnect = game.host(&stack, &seat.lobby_id(), DISCONNECTED, json!({})).await;
    assert_eq!(of_connect.body["message"], of_disconnect.body["message"]);
}

#[tokio::test]
async fn forty_rejoins_at_once_lead_to_one_connect() {
    let (stack, game) = start_keeping("forty").await;
    for round in 1..5 {
        let seat = playing(&stack, &game).await;
        let answers = join_all((0..40).map(|_| rejoin(&stack, &seat))).await;
        let tokens: Vec<_> = answers.into_iter().map(Answer::expect_ok).collect();
        assert!(tokens.iter().all(|one| one.body == tokens[0].body), "round {round}");
        let connects = join_all(tokens.iter().map(|one| game.connect_with_details(&stack, one))).await;
        let mut outcomes = BTreeMap::new();
        for answer in &connects {
            *outcomes.entry((answer.status.as_u16(), answer.body["code"].as_str())).or_insert(0) += 1;
        }
        assert_eq!(outcomes, BTreeMap::from([((200, None), 1), ((TWICE.0, Some(TWICE.1)), 39)]), "I7");
        game.end_lobby(&stack, &seat.lobby_id()).await.expect_ok();
    }
}

#[tokio::test]
async fn of_two_tokens_that_connect_at_once_the_newer_one_does() {
    let (stack, game) = start("tokens", json!({ "max_players": 40 })).await;
    let mut seats = Vec::new();
    for _ in 0..20 {
        seats.push(playing(&stack, &game).await);
    }
    let rejoined = join_all(seats.iter().map(|seat| rejoin(&stack, seat))).await;
    let both = seats.iter().zip(&rejoined).map(async |(old, new)| {
        let ((old, new), gone) = join(
            join(game.connect_with_details(&stack, old), game.connect_with_details(&stack, new)),
            game.disconnect(&stack, old),
        )
        .await;
        assert_eq!(old.refusal(), REMOVED, "I7");
        gone.expect_ok();
        new.expect_ok();
    });
    join_all(both).await;
    assert_eq!(seats_of(&stack, &game, &seats[0]).await, (20, 0, 20), "I4");
}

#[tokio::test]
async fn of_a_player_who_leaves_and_comes_back_at_once_one_thing_happened() {
    let (stack, game) = start("race", json!({ "max_players": 256, "keep_seconds": 30 })).await;
    let stays = playing(&stack, &game).await;
    let mut seats = Vec::new();
    for _ in 0..30 {
        seats.push(playing(&stack, &game).await);
    }
    for seat in &seats {
        game.disconnect(&stack, seat).await.expect_ok();
    }
    let both = seats.iter().map(async |seat| {
        let (left, back) = join(by_token(&stack, "leave", seat), rejoin(&stack, seat)).await;
        left.expect_ok();
        match back.status.as_u16() {
            200 => game.connect_with_details(&stack, &back).await.status.as_u16() == 200,
            _ => {
                assert_eq!(back.refusal(), REMOVED);
                false
            }
        }
    });
    let are_back = join_all(both).await.into_iter().filter(|is_back| *is_back).count();
    let lobby = game.lobby(&stack, &stays.lobby_id()).await;
    assert_eq!((lobby.taken as usize, lobby.connected.len()), (are_back + 1, are_back + 1), "I4");
}

#[tokio::test]
async fn a_player_who_comes_back_holds_one_seat_of_the_address_that_took_it() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 8, "keep_seconds": 30 });
    let mut new = new_game("address", json!({ "arena": mode }), 9);
    new.namespaces[0].max_players_per_client = 2;
    let game = stack.make_game_of(new, 9).await;
    let (seat, _other) = (playing(&stack, &game).await, playing(&stack, &game).await);
    game.disconnect(&stack, &seat).await.expect_ok();
    let full = (429, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    assert_eq!(find(&stack, &game).await.refusal().1, full.1, "I12: a kept seat is held");
    // From elsewhere: a phone that changed its network.
    let body = json!({ "player_token": seat.body["player"]["token"] }).to_string();
    let request = http::Request::post(format!("{}/matchmaker/players/rejoin", stack.demo().base_url));
    let request = request.body(http_body_util::Full::from(body)).unwrap();
    let back = stack.send_from(Ipv4Addr::new(127, 0, 0, 9), request).await.expect_ok();
    game.connect_with_details(&stack, &back).await.expect_ok();
    let PlayerSeat { namespace_id, client, .. } = stack.seat(&back);
    let client = Client { namespace_id, client_id: client.unwrap() };
    assert_eq!(stack.store().holds(&client).await.unwrap().holds.len(), 2);
    assert_eq!(find(&stack, &game).await.refusal().1, full.1);
    game.disconnect(&stack, &back).await.expect_ok();
    stack.clock.advance(KEPT);
    // The seat lapsed, and its player had connected: no strike.
    find(&stack, &game).await.expect_ok();
    let holds = stack.store().holds(&client).await.unwrap();
    assert_eq!((holds.holds.len(), holds.standing), (2, Standing { is_proven: true, strikes: 0 }));
}

#[tokio::test]
async fn a_retried_find_of_a_player_who_came_back_has_the_first_token() {
    let (stack, game) = start("keyed", json!({})).await;
    let find = async || {
        let body = json!({ "game_modes": ["arena"] });
        game.play_keyed(&stack, "lobbies/find", "k", body).await.expect_ok()
    };
    let found = find().await;
    game.connect(&stack, &found).await.expect_ok();
    let back = rejoin(&stack, &found).await.expect_ok();
    assert_eq!(find().await.body, found.body, "I5");
    game.connect_with_details(&stack, &back).await.expect_ok();
    assert_eq!(find().await.body, found.body, "I5");
    assert_eq!(game.connect_with_details(&stack, &found).await.refusal(), REMOVED, "I7");
}

#[tokio::test]
async fn a_kept_seat_is_reserved_to_its_game_server() {
    let (stack, game) = start_keeping("counted").await;
    let (goes, _stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
    game.disconnect(&stack, &goes).await.expect_ok();
    let lobbies = game.serve(&stack, "heartbeat", json!({ "server_id": "one" })).await.expect_ok().body;
    assert_eq!(lobbies["lobbies"][0]["seats"], json!({ "reserved": 1, "connected": 1 }));
}

/// Lets `function` crash after so many calls of DynamoDB; its status if it answered before.
async fn crash(stack: &TestStack, function: &str, right: &str, body: &Value, calls: usize) -> Option<u16> {
    let (link, crashed) = Crashing::after(stack.stack.store_link(), calls);
    tokio::select! {
        () = crashed.notified() => None,
        status = call_over(stack, Arc::new(link), function, right, body) => Some(status),
    }
}

#[tokio::test]
async fn after_a_crash_at_any_call_the_next_request_makes_it_right() {
    let stack = TestStack::start().await;
    for function in ["rejoin-player", "disconnect-player", "connect-player"] {
        for calls in 1.. {
            let name = format!("{}-{calls}", function.split('-').next().unwrap());
            let game = game(&stack, &name, json!({ "max_players": 2, "keep_seconds": 30 })).await;
            game.register(&stack, "one", json!({ "capacity": 9, "lease_seconds": 0 })).await;
            let (seat, _stays) = (playing(&stack, &game).await, playing(&stack, &game).await);
            let shown = match function {
                "connect-player" => rejoin(&stack, &seat).await.expect_ok(),
                _ => seat,
            };
            let body = json!({ "player_token": shown.body["player"]["token"] });
            let right = game.lobby_token(&stack, &shown.lobby_id());
            let answered = crash(&stack, function, &right, &body, calls).await;
            let back = rejoin(&stack, &shown).await.expect_ok();
            let connected = game.connect_with_details(&stack, &back).await;
            assert!([200, 400].contains(&connected.status.as_u16()), "{name}: {}", connected.body);
            assert_eq!(seats_of(&stack, &game, &shown).await, (2, 0, 2), "I4, {name}");
            let again = rejoin(&stack, &back).await.expect_ok();
            assert_eq!(game.connect_with_details(&stack, &again).await.status, 200, "{name}");
            if answered.is_some() {
                assert_eq!(answered, Some(200), "{name}");
                break;
            }
        }
    }
}

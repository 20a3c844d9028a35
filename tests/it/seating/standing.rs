//! Reservations do not weigh as much as players: who gets seats and lobbies where they run short.

use std::{net::Ipv4Addr, time::Duration};

use harness::{
    Answer, TestGame, TestStack,
    instance::{Instance, event_from},
    new_game,
};
use serde_json::{Value, json};
use shared::{
    base::usage::Usage,
    cloud::provision::NewGame,
    models::{
        client::Client,
        errors::Error,
        ids::{BurstSecret, LobbyId},
        lobby::Stage,
        standing::Standing,
        tag_digests::TagDigests,
        token::PlayerSeat,
    },
    request::Request,
    store::{
        creation::{Beginning, BurstOutcome, HeadKey},
        holds::ClientHolds,
    },
};

use super::{CAP, HOME, request};

const TOO_MANY_LOBBIES: (u16, &str) = (400, "MATCHMAKER_TOO_MANY_LOBBIES");
const TOO_MANY_SEATS: (u16, &str) = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
const STOPPED: (u16, &str) = (400, "MATCHMAKER_LOBBY_STOPPED");
/// Longer than any reservation here.
const LAPSED: Duration = Duration::from_secs(61);
const A_WHILE: Duration = Duration::from_secs(3);

/// A game of so many lobbies of four seats, whose clients may hold eight.
async fn small_game(stack: &TestStack, name: &str, lobby_count_max: u32) -> TestGame {
    game_of(stack, name, lobby_count_max, 60).await
}

/// The same with seats that wait for so many seconds.
async fn game_of(stack: &TestStack, name: &str, lobby_count_max: u32, reservation_secs: u32) -> TestGame {
    let mode = json!({ "regions": ["fra"], "max_players": 4, "reservation_seconds": reservation_secs,
        "taggable": true });
    game_with(stack, new_game(name, json!({ "arena": mode }), lobby_count_max)).await
}

/// A game whose clients may hold eight seats.
async fn game_with(stack: &TestStack, mut new: NewGame) -> TestGame {
    new.namespaces[0].max_players_per_client = CAP;
    stack.make_game_of(new, 100).await
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 2, last)
}

/// A find from an address in a lobby with `tag`, which only such finds share.
async fn find(stack: &TestStack, game: &TestGame, from: Ipv4Addr, tag: &str) -> Answer {
    let body: Value = json!({ "game_modes": ["arena"], "tags": { "party": tag } });
    stack.send_from(from, request(game, &stack.demo().base_url, "find", None, &body)).await
}

async fn client_of(stack: &TestStack, answer: &Answer) -> ClientHolds {
    let PlayerSeat { namespace_id, client, .. } = stack.seat(answer);
    stack.store().holds(&Client { namespace_id, client_id: client.unwrap() }).await.unwrap()
}

#[tokio::test]
async fn at_the_limit_the_lobby_of_the_most_doubted_client_makes_room() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "room", 2).await;
    let first = find(&stack, &game, HOME, "one").await.expect_ok();
    let second = find(&stack, &game, HOME, "two").await.expect_ok();
    assert_eq!(find(&stack, &game, address(1), "three").await.refusal(), TOO_MANY_LOBBIES, "too young");
    stack.clock.advance(A_WHILE);
    let other = find(&stack, &game, address(2), "three").await.expect_ok();
    assert_eq!(game.live_lobbies(&stack).await, 2, "I2");
    assert_eq!(game.connect(&stack, &second).await.refusal(), STOPPED, "I4: its player learns it");
    game.connect(&stack, &first).await.expect_ok();
    game.connect(&stack, &other).await.expect_ok();
}

#[tokio::test]
async fn a_fresh_clients_lobby_makes_room_after_five_seconds_however_long_seats_wait() {
    let stack = TestStack::start().await;
    for (name, reservation_secs) in [("short", 12), ("shorter", 15), ("long", 60)] {
        let game = game_of(&stack, name, 2, reservation_secs).await;
        let playing = find(&stack, &game, HOME, "one").await.expect_ok();
        game.connect(&stack, &playing).await.expect_ok();
        find(&stack, &game, address(1), "two").await.expect_ok();
        stack.clock.advance(Duration::from_secs(4));
        assert_eq!(find(&stack, &game, address(2), "three").await.refusal(), TOO_MANY_LOBBIES, "{name}");
        stack.clock.advance(Duration::from_secs(2));
        find(&stack, &game, address(2), "three").await.expect_ok();
    }
}

/// A full game, two of whose lobbies are of doubted makers: these, with their tags.
async fn full_game(stack: &TestStack, name: &str) -> (TestGame, Vec<(String, &'static str)>) {
    let game = small_game(stack, name, 4).await;
    let mut doubted = Vec::new();
    for (from, tags) in [(HOME, ["one", "two"]), (address(9), ["three", "four"])] {
        find(stack, &game, from, tags[0]).await.expect_ok();
        doubted.push((find(stack, &game, from, tags[1]).await.expect_ok().lobby_id(), tags[1]));
    }
    stack.clock.advance(A_WHILE);
    (game, doubted)
}

/// A find of the `nth` newcomer, for a lobby of its own.
fn late_find(game: &TestGame, nth: u8) -> Request {
    let authorization = format!("Bearer {}", game.public);
    let body = json!({ "game_modes": ["arena"], "tags": { "party": format!("late {nth}") } });
    event_from(address(nth), &[("authorization", &authorization)], &body, &[]).into()
}

#[tokio::test]
async fn a_find_that_ends_a_lobby_takes_its_place_without_a_look_for_servers() {
    let stack = TestStack::start().await;
    let (game, _) = full_game(&stack, "again").await;
    let instance = stack.instance();
    let mut costs = Vec::new();
    for nth in 0..2 {
        let before = instance.usage();
        instance.call(&late_find(&game, nth)).await.unwrap();
        costs.push(instance.usage() - before);
    }
    let usage = |calls, read_units, write_units| Usage { calls, read_units, write_units };
    assert_eq!(costs, [usage(25, 21.0, 28.0), usage(11, 3.5, 28.0)]);
}

#[tokio::test]
async fn a_lobby_to_which_somebody_came_since_the_search_makes_no_room() {
    let stack = TestStack::start().await;
    let (game, doubted) = full_game(&stack, "came").await;
    let instance = stack.instance();
    instance.call(&late_find(&game, 0)).await.unwrap();
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let lives =
        |id: &str| lobbies.iter().any(|lobby| lobby.lobby_id.as_str() == id && lobby.stage != Stage::Ended);
    let (left, tag) = doubted.iter().find(|(lobby_id, _)| lives(lobby_id)).unwrap();
    assert_eq!(find(&stack, &game, address(5), tag).await.expect_ok().lobby_id(), *left);
    assert!(matches!(instance.call(&late_find(&game, 1)).await, Err(Error::TooManyLobbies)));
}

#[tokio::test]
async fn a_lobby_with_a_player_or_of_a_client_whose_players_connect_makes_no_room() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "kept", 2).await;
    let first = find(&stack, &game, HOME, "one").await.expect_ok();
    game.connect(&stack, &first).await.expect_ok();
    game.disconnect(&stack, &first).await.expect_ok();
    let playing = find(&stack, &game, HOME, "two").await.expect_ok();
    game.connect(&stack, &playing).await.expect_ok();
    let waiting = find(&stack, &game, HOME, "three").await.expect_ok();
    stack.clock.advance(A_WHILE);
    assert_eq!(find(&stack, &game, address(1), "four").await.refusal(), TOO_MANY_LOBBIES);
    game.connect(&stack, &waiting).await.expect_ok();
}

#[tokio::test]
async fn a_client_that_holds_a_seat_nobody_used_displaces_no_lobby() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "suspect", 3).await;
    for tag in ["one", "two"] {
        find(&stack, &game, HOME, tag).await.expect_ok();
    }
    find(&stack, &game, address(1), "three").await.expect_ok();
    stack.clock.advance(A_WHILE);
    assert_eq!(find(&stack, &game, address(1), "four").await.refusal(), TOO_MANY_LOBBIES);
    find(&stack, &game, address(2), "five").await.expect_ok();
}

#[tokio::test]
async fn a_seat_given_up_is_free_for_its_client_and_counts_as_one_that_lapsed() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "given-up", 9).await;
    let seat = find(&stack, &game, HOME, "one").await.expect_ok();
    let stays = find(&stack, &game, HOME, "two").await.expect_ok();
    for _ in 0..2 {
        let body = json!({ "player_token": seat.body["player"]["token"] }).to_string();
        stack.call(http::Method::POST, "/matchmaker/players/leave", None, body).await.expect_ok();
    }
    let client = client_of(&stack, &seat).await;
    let held: Vec<_> = client.holds.iter().map(|hold| hold.lobby_id.to_string()).collect();
    assert_eq!(held, [stays.lobby_id()]);
    assert_eq!(client.standing, Standing { is_proven: false, strikes: 1 });
    // A player who connects lifts it.
    game.connect(&stack, &stays).await.expect_ok();
    game.disconnect(&stack, &stays).await.expect_ok();
    assert_eq!(client_of(&stack, &seat).await.standing, Standing { is_proven: true, strikes: 0 });
}

#[tokio::test]
async fn while_lobbies_run_short_a_client_of_whom_nobody_connected_holds_two_seats() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "short", 4).await;
    let mut seated = Vec::new();
    for _ in 0..2 {
        seated.push(find(&stack, &game, HOME, "one").await.expect_ok());
    }
    find(&stack, &game, address(1), "two").await.expect_ok();
    stack.clock.advance(A_WHILE);
    let refused = find(&stack, &game, HOME, "one").await;
    assert_eq!(refused.refusal(), TOO_MANY_SEATS, "I12");
    assert_eq!(find(&stack, &game, HOME, "one").await.refusal(), TOO_MANY_SEATS, "from memory");

    // One is enough: a school, or a carrier's network, gets its eight.
    game.connect(&stack, &seated[0]).await.expect_ok();
    for _ in 2..CAP {
        seated.push(find(&stack, &game, HOME, "one").await.expect_ok());
    }
    assert_eq!(find(&stack, &game, HOME, "one").await.refusal(), TOO_MANY_SEATS, "I12");
}

#[tokio::test]
async fn while_lobbies_are_enough_a_client_of_whom_nobody_connected_holds_its_eight() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "enough", 100).await;
    for _ in 0..CAP {
        find(&stack, &game, HOME, "one").await.expect_ok();
    }
    assert_eq!(find(&stack, &game, HOME, "one").await.refusal(), TOO_MANY_SEATS, "I12");
}

#[tokio::test]
async fn a_client_whose_reservations_lapse_gets_one_seat_for_a_short_time_until_a_player_connects() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "trial", 2).await;
    let mut last = None;
    for _ in 0..2 {
        last = Some(find(&stack, &game, HOME, "one").await.expect_ok());
    }
    stack.clock.advance(LAPSED);
    let playing = find(&stack, &game, address(1), "two").await.expect_ok();
    game.connect(&stack, &playing).await.expect_ok();
    let before = stack.clock.now();
    let tried = find(&stack, &game, HOME, "one").await.expect_ok();
    let standing = client_of(&stack, &tried).await.standing;
    assert_eq!(standing, Standing { is_proven: false, strikes: 2 }, "{last:?}");
    let seat = stack.seat(&tried);
    let lobby = game.lobby(&stack, &tried.lobby_id()).await;
    let until = lobby.reserved[&seat.seat_id];
    assert!(until.since(before) < Duration::from_secs(11), "{until:?}");
    assert_eq!(find(&stack, &game, HOME, "one").await.refusal(), TOO_MANY_SEATS, "I12");

    game.connect(&stack, &tried).await.expect_ok();
    game.disconnect(&stack, &tried).await.expect_ok();
    let again = find(&stack, &game, HOME, "two").await.expect_ok();
    assert_eq!(client_of(&stack, &again).await.standing, Standing { is_proven: true, strikes: 0 });
}

#[tokio::test]
async fn who_leaves_without_having_connected_proves_nothing() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "cancelled", 4).await;
    let cancelled = find(&stack, &game, HOME, "one").await.expect_ok();
    game.disconnect(&stack, &cancelled).await.expect_ok();
    let again = find(&stack, &game, HOME, "one").await.expect_ok();
    let holds = client_of(&stack, &again).await;
    assert_eq!((holds.standing, holds.holds.len()), (Standing::default(), 1));
}

#[tokio::test]
async fn joins_count_like_finds_while_lobbies_run_short() {
    let stack = TestStack::start().await;
    let game = small_game(&stack, "joins", 2).await;
    let lobby_id = find(&stack, &game, address(1), "one").await.expect_ok().lobby_id();
    let join = async || {
        let body = json!({ "lobby_id": lobby_id });
        stack.send_from(HOME, request(&game, &stack.demo().base_url, "join", None, &body)).await
    };
    for _ in 0..2 {
        join().await.expect_ok();
    }
    assert_eq!(join().await.refusal(), TOO_MANY_SEATS, "I12, with a seat free");
}

/// A game at its limit of three lobbies: two with players, and one with a reservation of `address(3)`. Nobody
/// plays its modes `duel` and `race`.
async fn playing_game(stack: &TestStack, name: &str) -> TestGame {
    let mode = json!({ "regions": ["fra"], "max_players": 4, "taggable": true });
    let modes = json!({ "arena": mode, "duel": mode, "race": mode });
    let game = game_with(stack, new_game(name, modes, 3)).await;
    for tag in ["one", "two"] {
        let playing = find(stack, &game, HOME, tag).await.expect_ok();
        game.connect(stack, &playing).await.expect_ok();
    }
    find(stack, &game, address(3), "three").await.expect_ok();
    game
}

/// What a find of `address(nth)` in `mode` costs `instance`, which refuses it at the limit of lobbies.
async fn cost_of_refusal(instance: &Instance, game: &TestGame, nth: u8, mode: &str) -> Usage {
    let authorization = format!("Bearer {}", game.public);
    let body = json!({ "game_modes": [mode] });
    let request = event_from(address(nth), &[("authorization", &authorization)], &body, &[]).into();
    let before = instance.usage();
    assert!(matches!(instance.call(&request).await, Err(Error::TooManyLobbies)));
    instance.usage() - before
}

#[tokio::test]
async fn a_find_reads_a_limit_that_was_reached_lately_before_it_tries_to_create() {
    let stack = TestStack::start().await;
    let game = playing_game(&stack, "lately").await;
    let instance = stack.instance();
    let first = cost_of_refusal(&instance, &game, 3, "duel").await;
    stack.clock.advance(A_WHILE);
    let later = cost_of_refusal(&instance, &game, 3, "duel").await;
    let write_units = [first, later].map(|usage| usage.write_units);
    assert_eq!(write_units, [10.0, 2.0], "only the first has a transaction refused, at six");
}

#[tokio::test]
async fn who_may_displace_no_lobby_draws_no_position_in_a_burst_whose_lobby_is_not_there() {
    let stack = TestStack::start().await;
    let game = playing_game(&stack, "burst").await;
    let instance = stack.instance();
    cost_of_refusal(&instance, &game, 3, "race").await;
    let beginning = Beginning {
        key: HeadKey::new(&game.pool("duel", "fra"), &TagDigests::default(), 4),
        secret: BurstSecret::random(&stack.ambient()),
        positions: 4,
        has_parties: false,
        exhausted: None,
    };
    let (first, now) = (LobbyId::from(stack.ambient().uuid()), stack.clock.now());
    let begun = stack.store().begin_burst(&beginning, &first, A_WHILE, now).await.unwrap();
    assert!(matches!(begun, BurstOutcome::Begun(_)));
    let held = cost_of_refusal(&instance, &game, 3, "duel").await;
    assert_eq!((held.calls, held.write_units), (5, 0.0), "of a client that holds a seat nobody used");
    let fresh = cost_of_refusal(&instance, &game, 4, "duel").await;
    assert!(fresh.write_units > 0.0, "{fresh:?}: who may displace one tries to create the next lobby");
}

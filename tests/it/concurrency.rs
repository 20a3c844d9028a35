//! Matching at the same instant: sets of lobbies and seats, over HTTP against one stack,
//! which runs as many instances of find as it has requests at a time. How many lobbies these make depends on
//! how fast they are: it is counted where time is virtual (I9).

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, future::join_all, stream};
use harness::{Answer, TestGame, TestStack, live_lobbies};
use serde_json::{Value, json};
use shared::models::lobby::Lobby;

/// Requests at once where load is steady, each of them to an instance of its own.
const AT_ONCE: usize = 64;

/// Lobby and seat of each success, and how often each refusal came.
#[derive(Debug, Default)]
struct Outcome {
    seats: BTreeSet<(String, String)>,
    successes: usize,
    refusals: BTreeMap<String, usize>,
}

impl Outcome {
    fn of(stack: &TestStack, answers: &[Answer]) -> Self {
        let mut outcome = Self::default();
        for answer in answers {
            if answer.status.is_success() {
                let seat = stack.seat(answer);
                outcome.successes += 1;
                outcome.seats.insert((seat.lobby_id.to_string(), seat.seat_id.to_string()));
            } else {
                *outcome.refusals.entry(answer.refusal().1.to_owned()).or_default() += 1;
            }
        }
        outcome
    }

    fn seats_by_lobby(&self) -> BTreeMap<&str, usize> {
        let mut seats = BTreeMap::new();
        for (lobby, _) in &self.seats {
            *seats.entry(lobby.as_str()).or_default() += 1;
        }
        seats
    }
}

/// The seats that the tables hold are those that were answered, and no lobby holds more than it may (I1, I4).
async fn check_tables(stack: &TestStack, game: &TestGame, outcome: &Outcome) -> Vec<Lobby> {
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let held: BTreeSet<_> = lobbies
        .iter()
        .flat_map(|lobby| lobby.reserved.keys().map(|seat| (lobby.lobby_id.to_string(), seat.to_string())))
        .collect();
    assert_eq!(held, outcome.seats);
    for lobby in &lobbies {
        assert_eq!(lobby.taken as usize, lobby.reserved.len());
        assert!(lobby.taken <= lobby.max_players, "{lobby:?}");
    }
    let live = live_lobbies(stack.store(), game.namespace_id()).await;
    assert_eq!(live as usize, lobbies.len(), "I2: the count is that of the lobbies");
    lobbies
}

fn arena() -> Value {
    json!({ "arena": { "regions": ["fra"], "max_players": 10 } })
}

async fn finds_at_once(stack: &TestStack, game: &TestGame, count: usize, body: Value) -> Outcome {
    let answers = join_all((0..count).map(|_| game.find(stack, body.clone()))).await;
    Outcome::of(stack, &answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_finds_share_the_lobbies_that_they_create() {
    let stack = TestStack::start().await;
    for round in 0..3 {
        let game = stack.make_game(&format!("burst-{round}"), arena(), 1_000, 1_000).await;
        let outcome = finds_at_once(&stack, &game, 200, json!({ "game_modes": ["arena"] })).await;
        assert_eq!(outcome.refusals, BTreeMap::new());
        assert_eq!(outcome.seats.len(), 200, "each find has a seat of its own");
        assert!(outcome.seats_by_lobby().values().all(|seats| *seats <= 10), "I1");
        let _lobbies = check_tables(&stack, &game, &outcome).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_cap_every_seat_is_given_and_the_rest_refused() {
    let stack = TestStack::start().await;
    for round in 0..3 {
        let game = stack.make_game(&format!("capped-{round}"), arena(), 5, 1_000).await;
        let outcome = finds_at_once(&stack, &game, 200, json!({ "game_modes": ["arena"] })).await;
        assert_eq!(outcome.seats.len(), 50, "{:?}", outcome.refusals);
        assert_eq!(outcome.refusals, BTreeMap::from([("MATCHMAKER_TOO_MANY_LOBBIES".to_owned(), 150)]));
        let lobbies = check_tables(&stack, &game, &outcome).await;
        assert_eq!(lobbies.len(), 5, "I2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn duels_fill_up_under_steady_load() {
    let stack = TestStack::start().await;
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("duels", modes, 4_000, 4_000).await;
    let finds = stream::iter(0..1_000).map(|_| game.find(&stack, json!({ "game_modes": ["duel"] })));
    let answers: Vec<Answer> = finds.buffer_unordered(AT_ONCE).collect().await;
    let outcome = Outcome::of(&stack, &answers);
    assert_eq!((outcome.seats.len(), outcome.refusals.len()), (1_000, 0), "{:?}", outcome.refusals);
    let lobbies = check_tables(&stack, &game, &outcome).await;
    let half_full = outcome.seats_by_lobby().values().filter(|seats| **seats == 1).count();
    assert_eq!(lobbies.len(), (1_000 + half_full) / 2, "I1, I4");
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_into_released_and_lapsed_seats_all_succeed() {
    let stack = TestStack::start().await;
    let game = stack.make_game("lapse", arena(), 3, 9).await;
    let find = json!({ "game_modes": ["arena"] });
    let first = finds_at_once(&stack, &game, 30, find.clone()).await;
    assert_eq!(first.seats.len(), 30, "{:?}", first.refusals);
    stack.clock.advance(std::time::Duration::from_secs(120));
    // At the cap, so that each must take over a lapsed seat, or a place that an ended lobby left.
    let second = finds_at_once(&stack, &game, 30, find).await;
    assert_eq!(second.seats.len(), 30, "{:?}", second.refusals);
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let now = stack.clock.now();
    assert!(lobbies.iter().all(|lobby| lobby.held_seats(now) <= 10), "I1 through expiry");
    let held: BTreeSet<_> = lobbies
        .iter()
        .flat_map(|lobby| {
            lobby.reserved.iter().map(|(seat, until)| (lobby.lobby_id.to_string(), seat.to_string(), *until))
        })
        .filter(|(_, _, until)| *until > now)
        .map(|(lobby, seat, _)| (lobby, seat))
        .collect();
    assert_eq!(held, second.seats, "I4");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_under_load_do_not_mix() {
    let stack = TestStack::start().await;
    let one = stack.make_game("one", arena(), 100, 100).await;
    let two = stack.make_game("two", arena(), 100, 100).await;
    let find = json!({ "game_modes": ["arena"] });
    let (first, second) =
        tokio::join!(finds_at_once(&stack, &one, 50, find.clone()), finds_at_once(&stack, &two, 50, find));
    let _lobbies = check_tables(&stack, &one, &first).await;
    let _lobbies = check_tables(&stack, &two, &second).await;
    assert!(first.seats_by_lobby().keys().all(|lobby| !second.seats_by_lobby().contains_key(lobby)), "I11");
}

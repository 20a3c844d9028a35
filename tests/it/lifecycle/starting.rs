//! Game servers whose lobbies are not ready at once: who finds one waits, for so long and no longer.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{join, join_all},
};
use harness::{
    Answer, TestGame, TestStack, game_server::registration, instance::request, interference::Losing,
};
use muster_local::emulator::link::Call;
use serde_json::{Value, json};
use shared::models::{
    errors::Error,
    lobby::{Lobby, Stage},
};

use super::{READY, find, game, listed};

async fn start(name: &str, arena: Value) -> (TestStack, TestGame) {
    let stack = TestStack::start().await;
    let game = game(&stack, name, arena).await;
    game.register(&stack, "one", json!({ "auto_ready": false, "lease_seconds": 0 })).await;
    (stack, game)
}

/// The lobbies once `seats` are taken in them.
async fn lobbies_with(stack: &TestStack, game: &TestGame, seats: u32) -> Vec<Lobby> {
    loop {
        let lobbies = stack.all_lobbies(game.namespace_id()).await;
        if lobbies.iter().map(|lobby| lobby.taken).sum::<u32>() >= seats {
            return lobbies;
        }
        tokio::task::yield_now().await;
    }
}

/// Runs finds until the tables show their seats, then `during`, then waits for the answers.
async fn find_during(
    stack: &TestStack,
    game: &TestGame,
    count: u32,
    during: impl AsyncFnOnce(&[Lobby]),
) -> Vec<Answer> {
    let mut finds = pin!(join_all((0..count).map(|_| find(stack, game))).fuse());
    let lobbies = {
        let mut seated = pin!(lobbies_with(stack, game, count).fuse());
        futures_util::select_biased! {
            lobbies = seated => lobbies,
            answers = finds => unreachable!("answered before ready: {answers:?}"),
        }
    };
    let ((), answers) = tokio::join!(during(&lobbies), finds);
    answers
}

#[tokio::test]
async fn who_finds_a_starting_lobby_waits_until_it_is_ready() {
    let (stack, game) = start("wait", json!({})).await;
    let answers = find_during(&stack, &game, 3, async |lobbies| {
        assert_eq!(lobbies.len(), 1, "concurrent finds share a lobby being created");
        assert_eq!(lobbies[0].stage, Stage::Starting);
        let lobby_id = lobbies[0].lobby_id.as_str();
        assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [lobby_id]);
        for _ in 0..2 {
            game.host(&stack, lobby_id, READY, json!({})).await.expect_ok();
        }
        stack.clock.advance(Duration::from_secs(2));
    })
    .await;
    for answer in answers {
        game.connect(&stack, &answer.expect_ok()).await.expect_ok();
    }
}

#[tokio::test]
async fn who_waits_for_a_lobby_that_ends_finds_another_seat() {
    for (name, function) in [("deregisters", "deregister"), ("ends", "end-lobby"), ("restarts", "register")] {
        let (stack, game) = start(name, json!({})).await;
        let answers = find_during(&stack, &game, 3, async |lobbies| {
            game.register(&stack, "two", json!({})).await;
            let body = match function {
                "deregister" => json!({ "server_id": "one", "end_lobbies": true }),
                "end-lobby" => json!({ "lobby_id": lobbies[0].lobby_id }),
                _ => registration("one", &json!({ "start_id": "one-2", "capacity": 1 })),
            };
            game.serve(&stack, function, body).await.expect_ok();
            if function == "end-lobby" {
                game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
            }
            stack.clock.advance(Duration::from_secs(2));
        })
        .await;
        for answer in &answers {
            let port = &answer.body["ports"]["default"]["hostname"];
            assert!(answer.status.is_success(), "{name}: {}", answer.body);
            assert!(*port == "two.example" || function == "register", "{name}: {port}");
            game.connect(&stack, answer).await.expect_ok();
        }
    }
}

#[tokio::test]
async fn a_find_whose_lobbies_all_end_before_they_are_ready_is_refused_for_want_of_a_server() {
    let (stack, game) = start("nowhere", json!({})).await;
    let answers = find_during(&stack, &game, 2, async |_| {
        let body = json!({ "server_id": "one", "end_lobbies": true });
        game.serve(&stack, "deregister", body).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
    })
    .await;
    for answer in &answers {
        assert_eq!(answer.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "I3");
    }
}

#[tokio::test]
async fn reservations_restart_when_the_lobby_is_ready() {
    let (stack, game) = start("anew", json!({ "max_players": 2, "reservation_seconds": 5 })).await;
    let answers = find_during(&stack, &game, 2, async |lobbies| {
        stack.clock.advance(Duration::from_secs(20));
        game.host(&stack, lobbies[0].lobby_id.as_str(), READY, json!({})).await.expect_ok();
        let lobby = game.lobby(&stack, lobbies[0].lobby_id.as_str()).await;
        let lapse = stack.clock.now() + Duration::from_secs(5);
        assert!(lobby.reserved.values().all(|until| *until == lapse), "{lobby:?}");
        assert_eq!(lobby.joinable_from, Some(lapse), "a full lobby is looked at again when a seat lapses");
        stack.clock.advance(Duration::from_secs(2));
    })
    .await;
    for answer in answers {
        game.connect(&stack, &answer.expect_ok()).await.expect_ok();
    }
}

#[tokio::test]
async fn a_lobby_remembered_while_it_started_is_looked_at_when_its_first_seat_lapses() {
    let (stack, game) = start("remembered", json!({ "max_players": 2 })).await;
    let answers = find_during(&stack, &game, 1, async |lobbies| {
        game.host(&stack, lobbies[0].lobby_id.as_str(), READY, json!({})).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
    })
    .await;
    let last = find(&stack, &game).await.expect_ok();
    assert_eq!(last.lobby_id(), answers[0].lobby_id());
    let lobby = game.lobby(&stack, &last.lobby_id()).await;
    let (in_sight, lapse) = (lobby.joinable_from.unwrap(), *lobby.reserved.values().min().unwrap());
    assert!(lobby.created_at < in_sight && in_sight <= lapse, "I9: {lobby:?}");
}

#[tokio::test]
async fn after_25_seconds_a_find_gives_its_seat_back_and_says_so() {
    let (stack, game) = start("timeout", json!({})).await;
    let answers = find_during(&stack, &game, 2, async |_| {
        stack.clock.advance(Duration::from_secs(25));
    })
    .await;
    for answer in &answers {
        assert_eq!(answer.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"), "I3");
        assert_eq!(answer.headers["retry-after"], "1");
    }
    let lobby = stack.all_lobbies(game.namespace_id()).await.remove(0);
    assert_eq!((lobby.stage, lobby.taken, lobby.reserved.len()), (Stage::Starting, 0, 0), "I4");
    // The next find goes to the same lobby, and is answered when it is ready.
    let answers = find_during(&stack, &game, 1, async |lobbies| {
        assert_eq!(lobbies.len(), 1);
        game.host(&stack, lobby.lobby_id.as_str(), READY, json!({})).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
    })
    .await;
    assert_eq!(answers[0].lobby_id(), lobby.lobby_id.as_str());
}

#[tokio::test]
async fn a_party_gives_its_seats_back_by_one_write() {
    let (stack, game) = start("party", json!({ "max_players": 8, "party_size_max": 8 })).await;
    let writes = Arc::new(AtomicUsize::new(0));
    let count = {
        let writes = Arc::clone(&writes);
        move |call: &Call| {
            let leaves = String::from_utf8_lossy(&call.body).contains("#taken = #taken - ");
            writes.fetch_add(usize::from(leaves), Ordering::SeqCst);
            false
        }
    };
    let instance = stack.instance_over(Losing::calls(stack.stack.store_link(), count));
    let authorization = format!("Bearer {}", game.public);
    let body = json!({ "game_modes": ["arena"], "party_size": 8 });
    let find = request(&[("authorization", &authorization)], &body);
    // The first one creates the lobby, the second one takes all of its seats.
    for finds in 1..=2 {
        let times_out = async {
            lobbies_with(&stack, &game, 8).await;
            stack.clock.advance(Duration::from_secs(25));
        };
        let (answer, ()) = join(instance.call(&find), times_out).await;
        assert!(matches!(answer, Err(Error::LobbyStartTimeout)), "{answer:?}");
        assert_eq!(writes.load(Ordering::SeqCst), finds);
        let lobby = stack.all_lobbies(game.namespace_id()).await.remove(0);
        assert_eq!((lobby.stage, lobby.taken, lobby.reserved.len()), (Stage::Starting, 0, 0), "I4, I13");
    }
}

#[tokio::test]
async fn no_player_connects_before_the_lobby_is_ready() {
    let (stack, game) = start("not-ready", json!({})).await;
    find_during(&stack, &game, 1, async |lobbies| {
        let seat_id = lobbies[0].reserved.keys().next().cloned().unwrap();
        let lobby_id = lobbies[0].lobby_id.clone();
        let seat = shared::models::token::PlayerSeat {
            namespace_id: game.namespace_id().clone(),
            lobby_id,
            seat_id,
            generation: 0,
            client: None,
            membership: None,
            data: None,
        };
        let token = stack.stack.keys().issue_player(&seat, stack.clock.now());
        let connected = (http::Method::POST, "players/connected");
        let body = json!({ "player_token": token });
        let answer = game.host(&stack, lobbies[0].lobby_id.as_str(), connected, body).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));
        stack.clock.advance(Duration::from_secs(25));
    })
    .await;
}

#[tokio::test]
async fn a_lobby_that_never_becomes_ready_ends_after_five_minutes() {
    let (stack, game) = start("never", json!({})).await;
    let timed_out =
        find_during(&stack, &game, 1, async |_| stack.clock.advance(Duration::from_secs(25))).await;
    assert_eq!(timed_out[0].refusal().0, 503);
    let lobby = stack.all_lobbies(game.namespace_id()).await.remove(0);
    stack.clock.advance(Duration::from_millis(274_999));
    assert_eq!(listed(&game.heartbeat(&stack, "one").await.expect_ok()), [lobby.lobby_id.as_str()]);
    stack.clock.advance(Duration::from_millis(1));
    let late = game.host(&stack, lobby.lobby_id.as_str(), READY, json!({})).await;
    assert_eq!(late.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    assert_eq!(game.lobby(&stack, lobby.lobby_id.as_str()).await.stage, Stage::Ended);
    assert_eq!(game.live_lobbies(&stack).await, 0);
}

#[tokio::test]
async fn finds_whose_next_lobby_never_becomes_ready_get_a_typed_error() {
    let (stack, game) = start("ended", json!({})).await;
    let answers = find_during(&stack, &game, 2, async |lobbies| {
        let ended = &lobbies[0].lobby_id;
        game.end_lobby(&stack, ended.as_str()).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
        // Both wait for another lobby of the same server.
        let is_next = |lobby: &Lobby| lobby.lobby_id != *ended && lobby.taken == 2;
        while !stack.all_lobbies(game.namespace_id()).await.iter().any(is_next) {
            tokio::task::yield_now().await;
        }
        stack.clock.advance(Duration::from_secs(23));
    })
    .await;
    for answer in answers {
        assert_eq!(answer.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"), "I3");
    }
}

#[tokio::test]
async fn nothing_lapses_while_a_lobby_starts() {
    let (stack, game) = start("lapse", json!({ "max_players": 1, "reservation_seconds": 5 })).await;
    find_during(&stack, &game, 1, async |lobbies| {
        stack.clock.advance(Duration::from_secs(10));
        let existing = super::find_existing(&stack, &game).await;
        assert_eq!(existing.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I1");
        assert_eq!(game.lobby(&stack, lobbies[0].lobby_id.as_str()).await.taken, 1);
        stack.clock.advance(Duration::from_secs(15));
    })
    .await;
}

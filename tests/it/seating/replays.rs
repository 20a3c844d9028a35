//! Requests with an `Idempotency-Key`: repeated, at the same time or after a crash, they take one seat (I5).

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::{join, join_all, pending};
use harness::{
    Answer, TestGame, TestStack, all_lobbies,
    instance::{self, Instance},
    interference::{Before, Crashing, Losing},
    new_game,
};
use http_body_util::Full;
use muster_local::emulator::link::{Call, Carried, Link, patient_client_over};
use serde_json::{Value, json};
use shared::{
    models::{
        client::{Client, ClientId},
        errors::Error,
        ids::{LobbyId, NamespaceId, SeatId, WriteId},
        lobby::Stage,
        seats::Seats,
    },
    store::{
        holds::{ClientHolds, Compared, Hold, HoldOutcome},
        replays::{RUN_LEASE, ReplayKey, Run, WAIT_MAX, hex_digest},
    },
};
use tokio::sync::Notify;

use super::{HOME, arena, ask, capped_game, find_from, request, seat, seats_held};

/// When a run that is not heard of is gone on in the place of.
const AFTER_LEASE: Duration = RUN_LEASE.saturating_add(Duration::from_secs(1));
const IN_PROGRESS: (u16, &str) = (503, "MATCHMAKER_CONTENTION");

async fn find(stack: &TestStack, game: &TestGame, key: &str) -> Answer {
    ask(stack, game, "find", key, &arena()).await
}

#[tokio::test]
async fn a_repeated_request_is_answered_alike_byte_for_byte() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "repeated", u32::MAX).await;
    let custom = json!({ "game_mode": "arena" });
    let first = find(&stack, &game, "k-find").await.expect_ok();
    let join = json!({ "lobby_id": first.lobby_id() });
    let requests = [("find", "k-find", arena()), ("join", "k-join", join), ("create", "k-create", custom)];
    let mut seats = BTreeSet::from([seat(&stack, &first)]);
    for (operation, key, body) in &requests {
        let answer = ask(&stack, &game, operation, key, body).await.expect_ok();
        stack.clock.advance(Duration::from_secs(3));
        let again = ask(&stack, &game, operation, key, body).await.expect_ok();
        assert_eq!(again.body.to_string(), answer.body.to_string(), "I5: {operation}");
        seats.insert(seat(&stack, &answer));
    }
    assert_eq!(seats.len(), 3);
    assert_eq!(seats_held(&stack, &game).await, seats, "I5");
    let lobby = game.lobby(&stack, &first.lobby_id()).await;
    assert_eq!(lobby.taken, 2, "I5: the find's and the join's");
}

#[tokio::test]
async fn a_key_is_for_one_body_of_one_operation() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "mismatch", 8).await;
    let first = find(&stack, &game, "k").await.expect_ok();
    let alike = json!({ "regions": null, "unknown": null, "game_modes": ["arena"] });
    assert_eq!(ask(&stack, &game, "find", "k", &alike).await.expect_ok().body, first.body, "as parsed");
    let other = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    let mismatch = (409, "API_IDEMPOTENCY_MISMATCH");
    assert_eq!(ask(&stack, &game, "find", "k", &other).await.refusal(), mismatch);
    assert_eq!(ask(&stack, &game, "create", "k", &json!({ "game_mode": "arena" })).await.refusal(), mismatch);
    for key in ["", " ", "a b", &"x".repeat(65), "ü"] {
        assert_eq!(find(&stack, &game, key).await.refusal(), (400, "API_BAD_HEADER"), "{key}");
    }
    find(&stack, &game, &"x".repeat(64)).await.expect_ok();
}

#[tokio::test]
async fn a_retry_has_its_own_data_of_the_player_and_other_data_is_another_request() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "data", 8).await;
    let ask = async |data: &str| {
        let body = format!(r#"{{"game_modes":["arena"],"player_data":{data}}}"#);
        let url = format!("{}/matchmaker/lobbies/find", stack.demo().base_url);
        let request = http::Request::post(url)
            .header("authorization", format!("Bearer {}", game.public))
            .header("idempotency-key", "k");
        stack.send(request.body(Full::new(body.into())).unwrap()).await
    };
    let first = ask(r#"{"name":"Ada","level":1.50}"#).await.expect_ok();
    let again = ask(r#"{"name":"Ada","level":1.50}"#).await.expect_ok();
    assert_eq!(again.text, first.text, "I5");
    // Alike as parsed: the seat is the same, and the data is as this request has it.
    let alike = ask(r#"{"level":1.5,"name":"Ada"}"#).await.expect_ok();
    assert_eq!(seat(&stack, &alike), seat(&stack, &first), "I5");
    let data = stack.seat(&alike).data.map(|data| serde_json::to_string(&data).unwrap());
    assert_eq!(data.as_deref(), Some(r#"{"level":1.5,"name":"Ada"}"#));
    assert_eq!(ask(r#"{"name":"Eve","level":1.50}"#).await.refusal(), (409, "API_IDEMPOTENCY_MISMATCH"));
    assert_eq!(ask("null").await.refusal(), (409, "API_IDEMPOTENCY_MISMATCH"));
    let items = stack.store().client().scan().table_name(&stack.store().tables().clients);
    let items = format!("{:?}", items.send().await.unwrap().items);
    assert!(items.contains("replay/") && !items.contains("Ada"), "{items}");
}

#[tokio::test]
async fn every_caller_has_keys_of_its_own() {
    let stack = TestStack::start().await;
    let (game, other) = (capped_game(&stack, "callers", 8).await, capped_game(&stack, "others", 8).await);
    let elsewhere = Ipv4Addr::new(127, 0, 1, 7);
    let repeatable = |game: &TestGame| request(game, &stack.demo().base_url, "find", Some("k"), &arena());
    let answers = [
        stack.send_from(HOME, repeatable(&game)).await.expect_ok(),
        stack.send_from(elsewhere, repeatable(&game)).await.expect_ok(),
        stack.send_from(HOME, repeatable(&other)).await.expect_ok(),
    ];
    let seats: BTreeSet<_> = answers.iter().map(|answer| seat(&stack, answer)).collect();
    assert_eq!(seats.len(), 3);
}

fn assert_in_progress(answer: &Answer) {
    assert_eq!(answer.refusal(), IN_PROGRESS, "{}", answer.body);
    assert_eq!(answer.body["metadata"], json!({ "reason": "request_in_progress" }));
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test]
async fn requests_repeated_at_the_same_time_share_one_seat() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "duplicates", 8).await;
    let answers = join_all((0..24).map(|_| find(&stack, &game, "k"))).await;
    let again = find(&stack, &game, "k").await.expect_ok().body;
    for answer in &answers {
        // Those for whom there was no place to wait repeat it later.
        if answer.status == 200 {
            assert_eq!(answer.body.to_string(), again.to_string(), "I5");
        } else {
            assert_in_progress(answer);
        }
    }
    assert!(answers.iter().any(|answer| answer.status == 200));
    assert_eq!(seats_held(&stack, &game).await.len(), 1, "I5");
}

#[tokio::test]
async fn an_answer_is_kept_for_ten_minutes_whatever_became_of_its_seat() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "kept", 8).await;
    let first = find(&stack, &game, "k").await.expect_ok();
    game.disconnect(&stack, &first).await.expect_ok();
    game.end_lobby(&stack, &first.lobby_id()).await.expect_ok();
    stack.clock.advance(Duration::from_secs(598));
    assert_eq!(find(&stack, &game, "k").await.expect_ok().body, first.body, "I5");
    stack.clock.advance(Duration::from_secs(3));
    let anew = find(&stack, &game, "k").await.expect_ok();
    assert_ne!(seat(&stack, &anew), seat(&stack, &first), "forgotten");
}

#[tokio::test]
async fn a_refusal_is_not_kept() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "not-kept", 2).await;
    let nowhere = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
    let nothing = (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
    assert_eq!(ask(&stack, &game, "find", "k", &nowhere).await.refusal(), nothing);
    let found = game.find(&stack, arena()).await.expect_ok();
    ask(&stack, &game, "find", "k", &nowhere).await.expect_ok();

    // Refused after it was noted what it was about to do: by the cap, and by the lobby.
    let join = json!({ "lobby_id": found.lobby_id() });
    let refused = ask(&stack, &game, "join", "at-cap", &join).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE"));
    game.disconnect(&stack, &found).await.expect_ok();
    ask(&stack, &game, "join", "at-cap", &join).await.expect_ok();

    let game = capped_game(&stack, "full", u32::MAX).await;
    let found = game.find(&stack, arena()).await.expect_ok();
    let join = json!({ "lobby_id": found.lobby_id() });
    for _ in 1..10 {
        game.play(&stack, "lobbies/join", join.clone()).await.expect_ok();
    }
    let full = (400, "MATCHMAKER_LOBBY_FULL");
    assert_eq!(ask(&stack, &game, "join", "full", &join).await.refusal(), full);
    game.disconnect(&stack, &found).await.expect_ok();
    ask(&stack, &game, "join", "full", &join).await.expect_ok();
}

/// Lets a function crash after so many calls of DynamoDB; whether it did, or answered before.
async fn crash(stack: &TestStack, event: &shared::request::Request, calls: usize) -> Option<Value> {
    let (link, crashed) = Crashing::after(stack.stack.store_link(), calls);
    let instance = stack.instance_over(link);
    tokio::select! {
        () = crashed.notified() => None,
        answer = instance.call(event) => Some(serde_json::to_value(answer.unwrap()).unwrap()),
    }
}

#[tokio::test]
async fn after_a_crash_at_any_call_the_repetition_has_the_same_one_seat() {
    let stack = TestStack::start().await;
    for has_lobby in [false, true] {
        for calls in 1.. {
            let game = capped_game(&stack, &format!("crash-{has_lobby}-{calls}"), 8).await;
            if has_lobby {
                game.find(&stack, arena()).await.expect_ok();
            }
            let others = seats_held(&stack, &game).await;
            let token = format!("Bearer {}", game.public);
            let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
            let event = instance::request(&headers, &arena());
            let answered = crash(&stack, &event, calls).await;
            let taken = &seats_held(&stack, &game).await - &others;
            assert!(taken.len() <= 1, "I5, after {calls} calls");
            // The first run is left alone for as long as it may live.
            stack.clock.advance(AFTER_LEASE);
            let again = stack.instance().call(&event).await.unwrap();
            let again = serde_json::to_value(again).unwrap();
            let held = &seats_held(&stack, &game).await - &others;
            assert_eq!(held.len(), 1, "I5, after {calls} calls");
            assert!(taken.is_subset(&held), "I5: the seat that the first run took, after {calls} calls");
            let claims = stack.stack.keys().verify_at_any_age(again["player"]["token"].as_str().unwrap());
            let Ok(shared::models::token::Claims::Player(player)) = claims else {
                unreachable!("{claims:?}")
            };
            assert_eq!(held, BTreeSet::from([(player.lobby_id.to_string(), player.seat_id.to_string())]));
            if let Some(answered) = answered {
                assert_eq!(again, answered, "I5");
                assert!(calls > 6, "a find makes more calls than {calls}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn after_a_crash_the_repetition_has_a_living_seat_though_the_first_one_lapsed() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 10, "reservation_seconds": 5 } });
    let mut has_replaced = false;
    for calls in 1.. {
        let mut new = new_game(&format!("lapsed-{calls}"), modes.clone(), 1_000);
        new.namespaces[0].max_players_per_client = 8;
        let game = stack.make_game_of(new, 100).await;
        let token = format!("Bearer {}", game.public);
        let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
        if crash(&stack, &instance::request(&headers, &arena()), calls).await.is_some() {
            assert!(calls > 6, "a find makes more calls than {calls}");
            break;
        }
        let taken = seats_held(&stack, &game).await;
        stack.clock.advance(AFTER_LEASE);
        let again = find(&stack, &game, "k").await.expect_ok();
        if taken.contains(&seat(&stack, &again)) {
            // Kept before the crash: a response is sent again whatever the state of its seat.
            let expired = (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED");
            assert_eq!(game.connect(&stack, &again).await.refusal(), expired, "after {calls} calls");
            continue;
        }
        has_replaced |= !taken.is_empty();
        assert!(taken.iter().all(|(lobby_id, _)| *lobby_id == again.lobby_id()), "I9, after {calls} calls");
        assert_eq!(find(&stack, &game, "k").await.body, again.body, "I5, after {calls} calls");
        game.connect(&stack, &again).await.expect_ok();
        assert_eq!(seats_held(&stack, &game).await.len(), 1, "I5, after {calls} calls");
    }
    assert!(has_replaced, "some runs crash after they took their seat");
}

/// A link that stalls before it carries one of its calls of an operation, or of all, until it is notified.
#[derive(Debug)]
struct Stalling {
    link: Arc<dyn Link>,
    operation: Option<&'static str>,
    before: AtomicUsize,
    stalled: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl Link for Stalling {
    fn carry(&self, call: Call) -> Carried {
        let counts = self.operation.is_none_or(|operation| operation == call.operation);
        let is_it = counts && self.before.fetch_sub(1, Ordering::SeqCst) == 1;
        let (stalled, goes_on, link) =
            (Arc::clone(&self.stalled), Arc::clone(&self.goes_on), Arc::clone(&self.link));
        Box::pin(async move {
            if is_it {
                stalled.notify_one();
                goes_on.notified().await;
            }
            link.carry(call).await
        })
    }
}

#[tokio::test]
async fn a_run_that_stalled_takes_no_seat_beside_the_one_that_took_its_place() {
    stall_before_each_call(120).await;
}

#[tokio::test]
async fn a_run_that_stalled_until_its_seat_lapsed_answers_as_the_one_that_took_its_place() {
    stall_before_each_call(5).await;
}

/// Has a run stall beyond its lease before one of its calls, whichever it is, while a repetition goes on in
/// its place: they are answered alike, if at all, and hold one seat.
async fn stall_before_each_call(reservation_seconds: u64) {
    let stack = TestStack::start().await;
    let modes = json!({
        "arena": { "regions": ["fra"], "max_players": 10, "reservation_seconds": reservation_seconds },
    });
    let mut stalls = 0;
    for calls in 1.. {
        let mut new = new_game(&format!("stalled-{calls}"), modes.clone(), 1_000);
        new.namespaces[0].max_players_per_client = 8;
        let game = stack.make_game_of(new, 100).await;
        let first = game.find(&stack, arena()).await.expect_ok();
        let others = seats_held(&stack, &game).await;
        let token = format!("Bearer {}", game.public);
        let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
        let event = instance::request(&headers, &arena());
        let (stalled, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let link = Stalling {
            link: Arc::clone(stack.stack.store_link()),
            operation: None,
            before: AtomicUsize::new(calls),
            stalled: Arc::clone(&stalled),
            goes_on: Arc::clone(&goes_on),
        };
        let slow = stack.instance_over(link);
        let close = async |is_closed: bool| {
            let closed = (http::Method::PUT, "lobbies/closed");
            game.host(&stack, &first.lobby_id(), closed, json!({ "is_closed": is_closed })).await.expect_ok();
        };
        let overtake = async {
            // Its lobby is out of reach while the repetition looks, and open again when it goes on itself.
            close(true).await;
            stack.clock.advance(AFTER_LEASE);
            let again = stack.instance().call(&event).await;
            close(false).await;
            goes_on.notify_one();
            again.unwrap()
        };
        let mut run = Box::pin(slow.call(&event));
        let is_stalled = tokio::select! {
            () = stalled.notified() => true,
            answered = &mut run => {
                answered.unwrap();
                false
            }
        };
        if !is_stalled {
            break;
        }
        stalls += 1;
        let (late, again) = join(run, Box::pin(overtake)).await;
        if let Ok(late) = late {
            assert_eq!(late, again, "I5, stalled before call {calls}");
        }
        let held = &seats_held(&stack, &game).await - &others;
        assert_eq!(held.len(), 1, "I5, stalled before call {calls}: {held:?}");
    }
    assert!(stalls > 6, "a find makes more calls than {stalls}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_is_not_given_and_its_repetition_has_the_seat() {
    let stack = TestStack::start().await;
    let game = capped_game(&stack, "forgotten", 8).await;
    let token = format!("Bearer {}", game.public);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
    let keeps = |call: &Call| String::from_utf8_lossy(&call.body).contains("SET #answer");
    let instance = stack.instance_over(Losing::calls(stack.stack.store_link(), keeps));
    let error = instance.call(&instance::request(&headers, &arena())).await.unwrap_err();
    assert_eq!(error.status_and_code().1, "API_UNAVAILABLE");
    let held = seats_held(&stack, &game).await;
    stack.clock.advance(AFTER_LEASE);
    let again = find(&stack, &game, "k").await.expect_ok();
    assert_eq!(held, BTreeSet::from([seat(&stack, &again)]), "I5");
    assert_eq!(seats_held(&stack, &game).await, held, "I5");
}

#[tokio::test]
async fn a_lobby_whose_creation_got_no_response_is_the_one_of_the_repetition() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("unheard", modes, 9, 9).await;
    let token = format!("Bearer {}", game.public);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
    // So long that a find's time is over.
    let clock = stack.clock.clone();
    let is_creation = move |call: &Call| {
        let is_it = call.operation == "TransactWriteItems";
        if is_it {
            clock.advance(Duration::from_secs(2));
        }
        is_it
    };
    let instance = stack.instance_over(Losing::responses(stack.stack.store_link(), is_creation));
    let error = instance.call(&instance::request(&headers, &arena())).await.unwrap_err();
    assert_eq!(error.status_and_code().0, 503, "{error:?}");
    let held = seats_held(&stack, &game).await;
    assert_eq!(held.len(), 1);
    stack.clock.advance(AFTER_LEASE);
    let again = find(&stack, &game, "k").await.expect_ok();
    assert_eq!(held, BTreeSet::from([seat(&stack, &again)]), "I5");
    assert_eq!(seats_held(&stack, &game).await, held, "I5");
}

#[tokio::test]
async fn a_seat_taken_elsewhere_after_a_crash_counts_against_the_cap() {
    let stack = TestStack::start().await;
    let cap = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    for calls in 1.. {
        let game = capped_game(&stack, &format!("elsewhere-{calls}"), 1).await;
        let first = find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 1)).await.expect_ok();
        let token = format!("Bearer {}", game.public);
        let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
        let event = instance::request(&headers, &arena());
        let answered = crash(&stack, &event, calls).await;
        let close = (http::Method::PUT, "lobbies/closed");
        game.host(&stack, &first.lobby_id(), close, json!({ "is_closed": true })).await.expect_ok();
        // Long enough for what the first run noted to stand for nothing.
        stack.clock.advance(Duration::from_secs(31));
        stack.instance().call(&event).await.unwrap();
        stack.clock.advance(Duration::from_secs(31));
        assert_eq!(game.find(&stack, arena()).await.refusal(), cap, "I12, after {calls} calls");
        if answered.is_some() {
            assert!(calls > 6, "a find makes more calls than {calls}");
            break;
        }
    }
}

#[tokio::test]
async fn a_find_that_crashes_while_it_waits_for_a_lobby_counts_against_the_cap() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let mut new = new_game("waits", modes, 1_000);
    new.namespaces[0].max_players_per_client = 1;
    let game = stack.make_game_of(new, 1).await;
    let full = find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 1)).await.expect_ok();
    game.register(&stack, "slow", json!({ "capacity": 9, "auto_ready": false })).await;

    let token = format!("Bearer {}", game.public);
    let event = instance::request(&[("authorization", token.as_str())], &arena());
    let (stalled, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let link = Stalling {
        link: Arc::clone(stack.stack.store_link()),
        // The first one notes the hold, for the lobby that the second one is about to take the seat in.
        operation: Some("UpdateItem"),
        before: AtomicUsize::new(2),
        stalled: Arc::clone(&stalled),
        goes_on: Arc::clone(&goes_on),
    };
    // The pause after its first look at a lobby that starts never ends.
    let waits = Arc::new(Notify::new());
    let waiting = Arc::clone(&waits);
    let ambient = stack.ambient().with_sleeper(move |span| {
        let is_it = span == Duration::from_millis(200);
        if is_it {
            waiting.notify_one();
        }
        async move {
            if is_it {
                pending().await
            }
        }
    });
    let instance = Instance::over(patient_client_over(Arc::new(link)), stack.stack.keys(), &ambient);
    let others = async {
        stalled.notified().await;
        let last = find_from(&stack, &game, Ipv4Addr::new(127, 0, 1, 2)).await.expect_ok();
        assert_eq!(last.lobby_id(), full.lobby_id());
        goes_on.notify_one();
        waits.notified().await;
    };
    tokio::select! {
        answered = instance.call(&event) => unreachable!("answered before ready: {answered:?}"),
        () = others => {}
    }
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let starting = lobbies.iter().find(|lobby| lobby.stage == Stage::Starting).unwrap();
    // Long enough for a hold whose seat is nowhere to stand for nothing.
    stack.clock.advance(Duration::from_secs(31));
    let ready = (http::Method::POST, "lobbies/ready");
    game.host(&stack, starting.lobby_id.as_str(), ready, json!({})).await.expect_ok();
    let cap = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    assert_eq!(game.find(&stack, arena()).await.refusal(), cap, "I12");
}

#[tokio::test]
async fn a_note_that_is_repeated_late_does_not_hide_the_one_after_it() {
    let stack = TestStack::start().await;
    let (store, ambient, now) = (stack.store(), stack.ambient(), stack.clock.now());
    let [first, second] = [0; 2].map(|_| LobbyId::from(ambient.uuid()));
    let (seat_id, later) = (SeatId::random(&ambient), now + Duration::from_millis(1));
    let run = Run {
        key: ReplayKey::new(["namespace", "credential", "address"], "k"),
        body: hex_digest(b"{}"),
        seat: seat_id.clone(),
        id: WriteId::random(&ambient),
        instead_of: None,
    };
    let (to_first, to_second) = (Some((&first, now)), Some((&second, later)));
    assert!(store.aim_run(&run, to_first, now).await.unwrap());
    assert!(store.aim_run(&run, to_second, later).await.unwrap());
    assert!(store.aim_run(&run, to_second, later).await.unwrap(), "the same write again");
    assert!(!store.aim_run(&run, to_first, now).await.unwrap(), "I5");
    assert!(!store.aim_run(&run, None, now).await.unwrap(), "I5");
    assert_eq!(store.replay(&run.key).await.unwrap().unwrap().lobby, Some(second.clone()), "I5");

    let namespace_id = NamespaceId::from(ambient.uuid());
    let client_id =
        ClientId::of(Some(Ipv4Addr::LOCALHOST.into()), &namespace_id, stack.stack.keys().address_key());
    let client = Client { namespace_id, client_id };
    let in_lobby =
        |lobby_id: &LobbyId, since| Hold { seat_id: seat_id.clone(), lobby_id: lobby_id.clone(), since };
    let (noted, pointed, settled) =
        (in_lobby(&first, now), in_lobby(&second, later), in_lobby(&first, later));
    let held = |hold: &Hold| ClientHolds { holds: vec![hold.clone()], ..ClientHolds::default() };
    assert_eq!(
        store.hold_seats(&client, (&Seats::one(noted.seat_id.clone()), &noted), 1, None).await.unwrap(),
        HoldOutcome::Noted(held(&noted))
    );
    let again =
        store.hold_seats(&client, (&Seats::one(pointed.seat_id.clone()), &pointed), 1, None).await.unwrap();
    assert_eq!(again, HoldOutcome::NotedBefore(noted.clone()));
    assert!(
        store.point_holds(&client, &Seats::one(pointed.seat_id.clone()), &noted, &pointed).await.unwrap()
    );
    assert!(
        store.point_holds(&client, &Seats::one(pointed.seat_id.clone()), &noted, &pointed).await.unwrap(),
        "the same write again"
    );
    assert!(
        store.point_holds(&client, &Seats::one(settled.seat_id.clone()), &pointed, &settled).await.unwrap()
    );
    assert!(
        !store.point_holds(&client, &Seats::one(pointed.seat_id.clone()), &noted, &pointed).await.unwrap(),
        "I12"
    );
    assert_eq!(store.holds(&client).await.unwrap(), held(&settled), "I12");

    // Nor does who saw it as it was take it away: whose own it replaces, and whose own it was.
    let other = Hold { seat_id: SeatId::random(&ambient), ..noted.clone() };
    let in_place_of = |hold: &Hold| Compared { replaced: vec![hold.clone()], ..Compared::default() };
    let refused = store
        .hold_seats(&client, (&Seats::one(other.seat_id.clone()), &other), 1, Some(&in_place_of(&pointed)))
        .await
        .unwrap();
    assert_eq!(refused, HoldOutcome::Refused(held(&settled)), "I12");
    store.withdraw_hold(&client, &pointed).await.unwrap();
    assert_eq!(store.holds(&client).await.unwrap(), held(&settled), "I12");
    assert_eq!(
        store
            .hold_seats(
                &client,
                (&Seats::one(other.seat_id.clone()), &other),
                1,
                Some(&in_place_of(&settled))
            )
            .await
            .unwrap(),
        HoldOutcome::Noted(held(&other))
    );
    store.withdraw_hold(&client, &other).await.unwrap();
    assert_eq!(store.holds(&client).await.unwrap(), ClientHolds::default(), "I12");
}

/// A game whose lobbies start and do not say ready.
async fn slow_game(stack: &TestStack, name: &str) -> TestGame {
    let mut new = new_game(name, json!({ "arena": { "regions": ["fra"], "max_players": 2 } }), 1_000);
    new.namespaces[0].max_players_per_client = 8;
    let game = stack.make_game_of(new, 0).await;
    game.register(stack, "slow", json!({ "capacity": 9, "auto_ready": false })).await;
    game
}

/// Waits until the game has a lobby that starts.
async fn starting_lobby(stack: &TestStack, game: &TestGame) -> String {
    loop {
        let lobbies = stack.all_lobbies(game.namespace_id()).await;
        if let Some(lobby) = lobbies.iter().find(|lobby| lobby.stage == Stage::Starting) {
            return lobby.lobby_id.to_string();
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until as many places are taken among those who wait for the one request that is noted.
async fn waiters(stack: &TestStack, count: usize) {
    let store = stack.store();
    loop {
        let scan = store.client().scan().table_name(&store.tables().clients).send().await.unwrap();
        let places = scan.items().iter().flat_map(|item| {
            ["first_waits_until", "second_waits_until"].into_iter().filter_map(|place| item.get(place))
        });
        let until = places.map(|until| until.as_n().unwrap().parse::<u64>().unwrap());
        if until.filter(|until| *until > stack.clock.now().0).count() == count {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The run of the one request that is noted.
async fn run_noted(stack: &TestStack) -> String {
    let store = stack.store();
    let scan = store.client().scan().table_name(&store.tables().clients).send().await.unwrap();
    scan.items().iter().find_map(|item| item.get("run")).unwrap().as_s().unwrap().clone()
}

/// Lets five seconds pass, and waits until the run under way has renewed its lease.
async fn pass_renewed(stack: &TestStack) {
    stack.clock.advance(WAIT_MAX);
    let (store, renewed) = (stack.store(), (stack.clock.now() + RUN_LEASE).to_string());
    loop {
        let scan = store.client().scan().table_name(&store.tables().clients).send().await.unwrap();
        let leases = scan.items().iter().filter_map(|item| item.get("lease_until"));
        if leases.into_iter().any(|lease| *lease.as_n().unwrap() == renewed) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn two_repetitions_wait_for_a_request_and_are_answered_with_it() {
    let stack = TestStack::start().await;
    let game = slow_game(&stack, "two-wait").await;
    let (first, (waited, ())) = join(find(&stack, &game, "k"), async {
        let lobby = starting_lobby(&stack, &game).await;
        join(join_all([find(&stack, &game, "k"), find(&stack, &game, "k")]), async {
            waiters(&stack, 2).await;
            for answer in join_all((0..20).map(|_| find(&stack, &game, "k"))).await {
                assert_in_progress(&answer);
            }
            let ready = (http::Method::POST, "lobbies/ready");
            game.host(&stack, &lobby, ready, json!({})).await.expect_ok();
            stack.clock.advance(Duration::from_secs(2));
        })
        .await
    })
    .await;
    let first = first.expect_ok();
    for waited in waited {
        assert_eq!(waited.expect_ok().body, first.body, "I5");
    }
}

#[tokio::test]
async fn a_repetition_waits_five_seconds_and_its_place_is_free_again() {
    let stack = TestStack::start().await;
    let game = slow_game(&stack, "five-seconds").await;
    let waiting = async {
        let lobby = starting_lobby(&stack, &game).await;
        // Longer than a lease that is not renewed.
        for _ in 0..4 {
            let began_at = stack.clock.now();
            let passing = async {
                waiters(&stack, 2).await;
                pass_renewed(&stack).await;
            };
            let (waited, ()) =
                join(join_all([find(&stack, &game, "k"), find(&stack, &game, "k")]), passing).await;
            waited.iter().for_each(assert_in_progress);
            assert_eq!(stack.clock.now().since(began_at), WAIT_MAX, "nobody waited longer");
        }
        let ready = (http::Method::POST, "lobbies/ready");
        game.host(&stack, &lobby, ready, json!({})).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
    };
    let (first, ()) = join(find(&stack, &game, "k"), waiting).await;
    assert_eq!(first.expect_ok().body, find(&stack, &game, "k").await.expect_ok().body, "I5");
    assert_eq!(seats_held(&stack, &game).await.len(), 1, "I5");
}

#[tokio::test]
async fn a_waiting_retry_gets_the_refusal_and_a_later_one_runs_again() {
    let stack = TestStack::start().await;
    let game = slow_game(&stack, "refused").await;
    let waiting = async {
        let _lobby = starting_lobby(&stack, &game).await;
        for _ in 0..4 {
            pass_renewed(&stack).await;
        }
        stack.clock.advance(Duration::from_secs(3));
        join(find(&stack, &game, "k"), async {
            waiters(&stack, 1).await;
            stack.clock.advance(Duration::from_secs(2));
        })
        .await
        .0
    };
    let (first, waited) = join(find(&stack, &game, "k"), waiting).await;
    let timed_out = (503, "MATCHMAKER_LOBBY_START_TIMEOUT");
    assert_eq!((first.refusal(), waited.refusal()), (timed_out, timed_out));
    assert_eq!(seats_held(&stack, &game).await.len(), 0, "I4: given back");
    let later = async {
        let ready = (http::Method::POST, "lobbies/ready");
        let lobby = starting_lobby(&stack, &game).await;
        game.host(&stack, &lobby, ready, json!({})).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
    };
    let (anew, ()) = join(find(&stack, &game, "k"), later).await;
    anew.expect_ok();
}

#[tokio::test]
async fn a_record_ends_at_once_with_the_seat_that_its_run_gives_back() {
    let stack = TestStack::start().await;
    let game = slow_game(&stack, "at-once").await;
    let (store, namespace_id) = (stack.store().clone(), game.namespace_id().clone());
    let held = Arc::new(AtomicUsize::new(usize::MAX));
    let seen = Arc::clone(&held);
    let ends_record = |call: &Call| String::from_utf8_lossy(&call.body).contains("#refusal = :refusal");
    let link = Before::response(stack.stack.store_link(), ends_record, async move {
        let lobbies = all_lobbies(&store, &namespace_id).await;
        seen.store(lobbies.iter().map(|lobby| lobby.reserved.len()).sum(), Ordering::Relaxed);
    });
    let token = format!("Bearer {}", game.public);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
    let event = instance::request(&headers, &arena());
    let waiting = async {
        let _lobby = starting_lobby(&stack, &game).await;
        for _ in 0..4 {
            pass_renewed(&stack).await;
        }
        stack.clock.advance(Duration::from_secs(5));
    };
    let (answer, ()) = join(stack.instance_over(link).call(&event), waiting).await;
    assert!(matches!(answer, Err(Error::LobbyStartTimeout)), "{answer:?}");
    assert_eq!(held.load(Ordering::Relaxed), 0, "I5: a repetition would take a second seat");
}

#[tokio::test]
async fn a_run_that_was_overtaken_gives_no_seat_back() {
    let stack = TestStack::start().await;
    let game = slow_game(&stack, "overtaken").await;
    let token = format!("Bearer {}", game.public);
    let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
    let event = instance::request(&headers, &arena());
    let (stalled, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let link = Stalling {
        link: Arc::clone(stack.stack.store_link()),
        // Reads of the lobby that starts.
        operation: Some("GetItem"),
        before: AtomicUsize::new(4),
        stalled: Arc::clone(&stalled),
        goes_on: Arc::clone(&goes_on),
    };
    let slow = stack.instance_over(link);
    let overtake = async {
        stalled.notified().await;
        let overtaken = run_noted(&stack).await;
        // The first run cannot renew its lease; then its own time is up.
        stack.clock.advance(Duration::from_secs(26));
        let lobby = starting_lobby(&stack, &game).await;
        let (again, ()) = join(find(&stack, &game, "k"), async {
            // Not before the repetition has it: else the first run would still be the only one.
            while run_noted(&stack).await == overtaken {
                tokio::task::yield_now().await;
            }
            goes_on.notify_one();
            stack.clock.advance(Duration::from_millis(100));
            let ready = (http::Method::POST, "lobbies/ready");
            game.host(&stack, &lobby, ready, json!({})).await.expect_ok();
            stack.clock.advance(Duration::from_secs(2));
        })
        .await;
        again.expect_ok()
    };
    let (first, again) = join(slow.call(&event), overtake).await;
    if let Ok(first) = first {
        assert_eq!(
            serde_json::to_value(first).unwrap()["lobby"]["lobby_id"],
            again.body["lobby"]["lobby_id"],
            "I5"
        );
    }
    game.connect(&stack, &again).await.expect_ok();
    assert_eq!(seats_held(&stack, &game).await.len(), 1, "I4");
}

//! The counts of requests, and that alarms and dashboard use nothing else.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use harness::{
    TestGame, TestStack,
    instance::{Instance, event, patient_client},
    interference::Before,
    new_game,
};
use muster_local::emulator::link::patient_client_over;
use regex_lite::Regex;
use serde_json::{Value, json};
use shared::{
    function::metrics::{
        Counts,
        Metric::{self, *},
    },
    models::{
        availability::Access,
        ids::{LobbyId, SeatId},
        lifecycle::Transition,
        seats::Seats,
        tag_digests::TagDigests,
    },
    store::{
        seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
        transitions::TransitionOutcome,
    },
};
use wiremock::{MockServer, ResponseTemplate};

use crate::screening;

mod alarms;
mod cloudwatch;

const OBSERVABILITY: &str = include_str!("../../infra/observability.yaml");

fn arena() -> Value {
    json!({ "game_modes": ["arena"] })
}

/// Status and counts of a find.
async fn counted(instance: &Instance, game: &TestGame, body: &Value) -> (u16, Vec<(Metric, u64)>) {
    let (status, counts) =
        instance.answer(event(&[("authorization", &format!("Bearer {}", game.public))], body, &[])).await;
    (status, listed(&counts))
}

fn listed(counts: &Counts) -> Vec<(Metric, u64)> {
    let counted = Metric::ALL.iter().map(|metric| (*metric, counts.get(*metric)));
    counted.filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn seats_and_the_reasons_for_none_are_counted() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("one-place", modes.clone(), 9, 1).await;
    let instance = stack.instance();
    assert_eq!(counted(&instance, &game, &arena()).await, (200, vec![(LobbyCreated, 1)]));
    assert_eq!(counted(&instance, &game, &arena()).await, (200, vec![(LobbyFound, 1)]));
    assert_eq!(counted(&instance, &game, &arena()).await, (503, vec![(NoServerAvailable, 1)]));

    // The find that reads a silent server counts it, once.
    let game = stack.make_game("silent", modes.clone(), 9, 0).await;
    game.add_server(&stack, "silent", "fra", 9, stack.clock.now() + Duration::from_secs(1)).await;
    stack.clock.advance(Duration::from_secs(2));
    let silent = (503, vec![(NoServerAvailable, 1), (ServerSilent, 1)]);
    assert_eq!(counted(&instance, &game, &arena()).await, silent);
    assert_eq!(counted(&instance, &game, &arena()).await, (503, vec![(NoServerAvailable, 1)]));

    let game = stack.make_game("one-lobby", modes.clone(), 1, 9).await;
    counted(&instance, &game, &arena()).await;
    counted(&instance, &game, &arena()).await;
    assert_eq!(counted(&instance, &game, &arena()).await, (400, vec![(TooManyLobbies, 1)]));

    let mut new = new_game("one-seat", modes, 9);
    new.namespaces[0].max_players_per_client = 1;
    let game = stack.make_game_of(new, 1).await;
    assert_eq!(counted(&instance, &game, &arena()).await, (200, vec![(LobbyCreated, 1)]));
    assert_eq!(counted(&instance, &game, &arena()).await, (400, vec![(TooManyPlayersFromSource, 1)]));
    // What the client did wrong is no metric.
    assert_eq!(counted(&instance, &game, &json!({ "game_modes": [] })).await, (400, vec![]));
}

#[tokio::test]
async fn a_caller_who_may_not_find_is_counted() {
    let stack = TestStack::start().await;
    for headers in [&[][..], &[("authorization", "Bearer x")], &[("origin", "https://nobody.example")]] {
        let (status, counts) = stack.instance().answer(event(headers, &arena(), &[])).await;
        assert_eq!((status, listed(&counts)), (401, vec![(AuthRefused, 1)]), "{headers:?}");
    }
}

/// Takes a seat in a lobby as a find does that did not come yet to the write that hides a full one.
async fn take_in_sight(stack: &TestStack, game: &TestGame, lobby_id: LobbyId) {
    let now = stack.clock.now();
    let claim = SeatClaim {
        lobby_id,
        access: Access::Find(game.pool("arena", "fra"), TagDigests::default()),
        seats: Seats::one(SeatId::random(&stack.ambient())),
        until: now + Duration::from_secs(60),
        capacity: PartyCapacity::Known(0),
        hiding: Hiding::No,
    };
    let taken = stack.store().take_seat(&claim, now).await;
    assert!(matches!(taken, Ok(SeatOutcome::Taken(_))), "{taken:?}");
}

#[tokio::test]
async fn a_seat_that_was_lost_to_others_is_counted() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("lost", modes, 9, 9).await;
    let first = stack.instance().find(&game.public, &arena()).await.unwrap();
    take_in_sight(&stack, &game, first.lobby.lobby_id).await;
    let (status, counts) = counted(&stack.instance(), &game, &arena()).await;
    // Once as the index shows it, once as the burst does that created it.
    assert_eq!((status, counts), (200, vec![(LobbyCreated, 1), (SeatContention, 2)]));
}

#[tokio::test]
async fn a_lobby_that_is_created_beside_one_with_a_free_seat_is_counted() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("raced", modes, 9, 9).await;
    let (leaver, other) = (game.find(&stack, arena()).await, game.find(&stack, arena()).await);
    assert_eq!(leaver.lobby_id(), other.lobby_id(), "a full lobby");
    for player in [&leaver, &other] {
        game.connect(&stack, player).await.expect_ok();
    }
    let mut found = BTreeSet::from([leaver.lobby_id()]);
    for _ in 0..3 {
        let full_in_sight = stack.instance().find(&game.public, &arena()).await.unwrap().lobby.lobby_id;
        assert!(found.insert(full_in_sight.to_string()), "the others are full");
        take_in_sight(&stack, &game, full_in_sight).await;
    }
    stack.clock.advance(Duration::from_millis(1));

    // While the last one's lobby is created, a player leaves another one, which the index then shows last.
    let (store, now) = (stack.store().clone(), stack.clock.now());
    let left = stack.seat(&leaver);
    let leave = Transition::Leave(left.seat_id);
    let happens = async move {
        let outcome = store.make_transition(&left.lobby_id, &leave, now).await.unwrap();
        assert!(matches!(outcome, TransitionOutcome::Made(_)), "{outcome:?}");
    };
    let link = Before::transaction(stack.stack.store_link(), happens);
    let instance = Instance::over(patient_client_over(Arc::new(link)), stack.stack.keys(), &stack.ambient());
    let (status, counts) = counted(&instance, &game, &arena()).await;
    assert_eq!((status, counts), (200, vec![(LobbyCreated, 1), (RaceCreate, 1), (SeatContention, 1)]));
}

#[tokio::test]
async fn captchas_that_are_refused_or_not_judged_are_counted() {
    let provider = MockServer::start().await;
    let refusal = json!({ "success": false, "error-codes": ["invalid-input-response"] });
    screening::answering(&provider, "/turnstile", ResponseTemplate::new(200).set_body_json(refusal)).await;
    screening::answering(&provider, "/hcaptcha", ResponseTemplate::new(500)).await;
    for (name, expected) in [("turnstile", (400, CaptchaRejected)), ("hcaptcha", (503, CaptchaUnavailable))] {
        let outside = screening::outside(&provider.uri());
        let stack = TestStack::start_with_outside(outside.clone()).await;
        let captcha = screening::captcha(name, 9, Duration::from_secs(60));
        let modes = json!({ "arena": screening::mode(None) });
        let game = screening::game(&stack, "guarded", modes, captcha).await;
        let client = patient_client(stack.stack.store_endpoint());
        let instance = Instance::among(outside, client, stack.stack.keys(), &stack.ambient());
        let (status, counts) = counted(&instance, &game, &screening::find(Some((name, "answer")))).await;
        assert_eq!((status, counts), (expected.0, vec![(expected.1, 1)]));
        assert_eq!(
            counted(&instance, &game, &screening::find(None)).await,
            (403, vec![]),
            "{name}: it is due"
        );
    }
}

#[tokio::test]
async fn tables_that_do_not_answer_are_counted() {
    let stack = TestStack::start().await;
    let game = stack.make_game("down", json!({ "arena": { "regions": ["fra"] } }), 9, 9).await;
    // Nothing listens there.
    let instance = Instance::new("http://127.0.0.1:1", stack.stack.keys(), &stack.ambient());
    assert_eq!(counted(&instance, &game, &arena()).await, (503, vec![(OperationFailed, 1)]));
}

#[test]
fn an_alarm_or_the_dashboard_uses_each_metric() {
    let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    let shown = Regex::new(r#"\\"([A-Z]\w+)\\""#).unwrap();
    let searched: BTreeSet<_> =
        shown.captures_iter(OBSERVABILITY).map(|found| found.get(1).unwrap().as_str()).collect();
    let searched: BTreeSet<_> = searched.into_iter().filter(|name| !name.starts_with("Muster")).collect();
    assert!(searched.is_subset(&names), "{searched:?}");
    let alarmed = alarms::watched(&format!("Muster/{}", cloudwatch::STACK));
    let alarmed: BTreeSet<_> = alarmed.into_iter().map(|(_, metric)| metric.name).collect();
    let unused: Vec<_> =
        names.iter().filter(|name| !searched.contains(*name) && !alarmed.contains(**name)).collect();
    assert!(unused.is_empty(), "no dashboard or alarm uses {unused:?}");
}

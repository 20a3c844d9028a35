//! What crashes and repeated writes leave behind, and many isolated instances at once.

#![expect(clippy::unwrap_used, reason = "code of tests outside of test functions")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{join_all, pending},
};
use harness::{
    Answer, TestGame, TestStack,
    instance::{self, Instance},
};
use lambda_http::{Context, RequestExt as _};
use muster_local::{
    emulator::link::{Call, Carried, Link, patient_client_over},
    stack::table_names,
};
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    function::{
        config::InvalidConfig,
        instance::Instance as Parts,
        operation::{Operation, answer},
    },
    models::{
        availability::{Access, Refusal},
        errors::Error,
        ids::{SeatId, ServerKey, WriteId},
        lifecycle::{Connect, Transition},
        lobby::Lobby,
        seats::Seats,
        server::Server,
        tag_digests::TagDigests,
        token::Claims,
    },
    request::Request,
    store::{
        client::Store,
        creation::HeadKey,
        seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
        servers::HeartbeatOutcome,
        transitions::TransitionOutcome,
    },
    wire::values::Empty,
};

fn find() -> Value {
    json!({ "game_modes": ["arena"] })
}

async fn arena(stack: &TestStack, name: &str, max_players: u32) -> TestGame {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": max_players } });
    stack.make_game(name, modes, 1_000, 1_000).await
}

/// The seat of an answer, by its token.
fn seat(stack: &TestStack, token: &str) -> (String, String) {
    match stack.stack.keys().verify(token, stack.clock.now()) {
        Ok(Claims::Player(seat)) => (seat.lobby_id.to_string(), seat.seat_id.to_string()),
        other => unreachable!("no player token: {other:?}"),
    }
}

/// A link that keeps what it carried.
#[derive(Debug)]
struct Recording {
    link: Arc<dyn Link>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Link for Recording {
    fn carry(&self, call: Call) -> Carried {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        self.link.carry(call)
    }
}

/// The transition that connects the first token of a claim's seat.
fn first_connect(stack: &TestStack, claim: &SeatClaim) -> Transition {
    let write = WriteId::random(&stack.ambient());
    Transition::Connect(Connect::first(claim.seats.first().clone(), write, stack.clock.now()))
}

#[tokio::test]
async fn a_close_or_a_reopening_that_arrives_again_undoes_nothing_that_came_later() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "toggled", 4).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let lobby_id = found.lobby_id().parse().unwrap();
    let (link, calls) = (Arc::clone(stack.stack.store_link()), Arc::default());
    let recording = Recording { link: Arc::clone(&link), calls: Arc::clone(&calls) };
    let store = Store::new(patient_client_over(Arc::new(recording)), table_names());
    let now = stack.clock.now();
    // The last one by a clock that is behind.
    let toggles =
        [(Transition::Close, 0), (Transition::Reopen, 1), (Transition::Close, 9), (Transition::Reopen, 5)];
    for (number, (transition, ms)) in toggles.into_iter().enumerate() {
        let outcome = store.make_transition(&lobby_id, &transition, now + Duration::from_millis(ms)).await;
        let TransitionOutcome::Made(lobby) = outcome.unwrap() else { unreachable!("toggle {number} is due") };
        let carried = calls.lock().unwrap().clone();
        for call in carried {
            let _refused = link.carry(call).await.unwrap();
        }
        let after = game.lobby(&stack, &found.lobby_id()).await;
        assert_eq!(
            (after.closed, after.joinable_from),
            (lobby.closed, lobby.joinable_from),
            "I6, toggle {number}"
        );
        assert_eq!(after.closed, transition == Transition::Close);
    }
}

/// An operation whose calls are never answered.
struct Endless;

impl Operation for Endless {
    type Output = Empty;

    const NAME: &'static str = "endless";

    fn start(_: &Parts) -> Result<Self, InvalidConfig> {
        Ok(Self)
    }

    async fn call(&self, _: &Request) -> Result<Empty, Error> {
        pending().await
    }
}

#[tokio::test]
async fn an_operation_that_does_not_end_is_answered_before_its_function_is_killed() {
    let stack = TestStack::start().await;
    let event = |deadline| {
        let mut context = Context::default();
        context.deadline = deadline;
        instance::event(&[], &json!({}), &[]).with_lambda_context(context)
    };
    let ambient = stack.ambient();
    let mut answered = Box::pin(answer(&Endless, event(stack.clock.now().0 + 29_000), &ambient));
    assert!((&mut answered).now_or_never().is_none());
    stack.clock.advance(Duration::from_millis(28_000));
    assert!((&mut answered).now_or_never().is_none());
    stack.clock.advance(Duration::from_millis(500));
    let response = answered.await;
    assert_eq!(response.status(), 503, "I3");
    assert!(response.headers().contains_key("retry-after"));
    let body: Value = serde_json::from_slice(response.body().as_ref()).unwrap();
    assert_eq!(body["code"], "API_UNAVAILABLE", "I3");

    // A deadline long past says nothing of the time that is left.
    let mut answered = Box::pin(answer(&Endless, event(600_000), &ambient));
    assert!((&mut answered).now_or_never().is_none());
    stack.clock.advance(Duration::from_secs(3_600));
    assert!((&mut answered).now_or_never().is_none());
}

/// The write for another seat of the lobby `found`.
fn claim_of(stack: &TestStack, game: &TestGame, found: &Answer) -> SeatClaim {
    SeatClaim {
        lobby_id: found.lobby_id().parse().unwrap(),
        access: Access::Find(game.pool("arena", "fra"), TagDigests::default()),
        seats: Seats::one(SeatId::random(&stack.ambient())),
        until: stack.clock.now() + Duration::from_secs(120),
        capacity: PartyCapacity::Known(0),
        hiding: Hiding::No,
    }
}

#[tokio::test]
async fn a_write_that_is_repeated_takes_one_seat() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "repeat", 4).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let now = stack.clock.now();
    let claim = claim_of(&stack, &game, &found);
    for _ in 0..2 {
        let outcome = stack.store().take_seat(&claim, now).await.unwrap();
        assert!(matches!(outcome, SeatOutcome::Taken(lobby) if lobby.taken == 2));
    }
    let lobby = stack.store().lobby(&claim.lobby_id).await.unwrap().unwrap();
    assert_eq!((lobby.taken, lobby.reserved.len()), (2, 2), "I4");
}

#[tokio::test]
async fn a_write_that_arrives_again_after_its_player_connected_takes_no_second_seat() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "late", 4).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let now = stack.clock.now();
    let claim = claim_of(&stack, &game, &found);
    let _taken = stack.store().take_seat(&claim, now).await.unwrap();
    let connect = first_connect(&stack, &claim);
    let connected = stack.store().make_transition(&claim.lobby_id, &connect, now).await.unwrap();
    assert!(matches!(connected, TransitionOutcome::Made(_)), "{connected:?}");
    let again = stack.store().take_seat(&claim, now).await.unwrap();
    assert!(matches!(again, SeatOutcome::Taken(_)), "it has its seat: {again:?}");
    let lobby = stack.store().lobby(&claim.lobby_id).await.unwrap().unwrap();
    assert_eq!((lobby.taken, lobby.reserved.len(), lobby.connected.len()), (2, 1, 1), "I4");
}

#[tokio::test]
async fn a_write_that_arrives_again_after_its_player_left_lets_its_token_in_no_second_time() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "left", 4).await;
    let stays = game.find(&stack, find()).await.expect_ok();
    let calls = Arc::<Mutex<Vec<Call>>>::default();
    let recording = Recording { link: Arc::clone(stack.stack.store_link()), calls: Arc::clone(&calls) };
    let store = Store::new(patient_client_over(Arc::new(recording)), table_names());
    let arrive_again = async || {
        let carried = std::mem::take(&mut *calls.lock().unwrap());
        let writes: Vec<Call> = carried.into_iter().filter(|call| call.operation == "UpdateItem").collect();
        for call in &writes {
            let _refused = stack.stack.store_link().carry(call.clone()).await.unwrap();
        }
        let lobby = game.lobby(&stack, &stays.lobby_id()).await;
        assert_eq!((lobby.taken, lobby.reserved.len(), lobby.connected.len()), (1, 1, 0), "I7");
        writes.len()
    };
    let began_at = stack.clock.now();
    // The second one's clock is behind: it knows of the first one's leave only when that refused it.
    for writes in [1, 2] {
        let claim = SeatClaim {
            lobby_id: stays.lobby_id().parse().unwrap(),
            access: Access::Find(game.pool("arena", "fra"), TagDigests::default()),
            seats: Seats::one(SeatId::random(&stack.ambient())),
            until: began_at + Duration::from_secs(120),
            capacity: PartyCapacity::Known(0),
            hiding: Hiding::No,
        };
        let taken = store.take_seat(&claim, began_at).await.unwrap();
        assert!(matches!(taken, SeatOutcome::Taken(_)), "{taken:?}");
        let connect = first_connect(&stack, &claim);
        for transition in [connect, Transition::Leave(claim.seats.first().clone())] {
            stack.clock.advance(Duration::from_millis(1));
            let outcome =
                stack.store().make_transition(&claim.lobby_id, &transition, stack.clock.now()).await;
            assert!(matches!(outcome, Ok(TransitionOutcome::Made(_))), "{outcome:?}");
        }
        assert_eq!(arrive_again().await, writes);
    }
}

#[tokio::test]
async fn a_late_write_of_an_earlier_heartbeat_shortens_no_lease() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "beats", 4).await;
    game.register(&stack, "beating", json!({})).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let lobby = game.lobby(&stack, &found.lobby_id()).await;
    let server = lobby.server.clone().unwrap();
    let beating = ServerKey { server_id: "beating".parse().unwrap(), ..server.clone() };
    let earlier = stack.clock.now();
    let later = earlier + Duration::from_secs(30);
    let lease = Duration::from_secs(60);
    let owner = stack.store().server(&beating).await.unwrap().unwrap().owner.unwrap();
    for now in [later, earlier] {
        let outcome = stack.store().extend_server_lease(&beating, None, &owner, now).await.unwrap();
        let HeartbeatOutcome::Alive(server) = outcome else { panic!("it is there") };
        assert_eq!(server.lease_until, later + lease, "I10");
        let extended = Server { lease_until: now + lease, ..*server };
        assert!(stack.store().extend_lease(&lobby.lobby_id, &extended, now).await.unwrap());
    }
    assert_eq!(game.lobby(&stack, &found.lobby_id()).await.lease_until, later + lease, "I10");
}

#[tokio::test]
async fn a_late_write_of_an_earlier_heartbeat_restores_no_lease_that_was_given_up() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "given-up", 1).await;
    let register = async |lease_seconds: Option<u64>| {
        let fields = json!({ "capacity": 2, "lease_seconds": lease_seconds.unwrap_or(0) });
        game.register(&stack, "beating", fields).await;
    };
    register(Some(60)).await;
    let lobby_id = game.find(&stack, find()).await.expect_ok().lobby_id();
    let lobby = game.lobby(&stack, &lobby_id).await;
    let server = stack.store().server(&lobby.server.clone().unwrap()).await.unwrap().unwrap();
    stack.clock.advance(Duration::from_secs(1));
    let earlier = stack.clock.now();
    let late = async |lobby: &Lobby| {
        let extended = Server { lease_until: earlier + Duration::from_secs(60), ..server.clone() };
        assert!(stack.store().extend_lease(&lobby.lobby_id, &extended, earlier).await.unwrap());
        game.lobby(&stack, lobby.lobby_id.as_str()).await.lease_until
    };

    stack.clock.advance(Duration::from_secs(1));
    register(None).await;
    assert_eq!(late(&lobby).await, Timestamp::NEVER, "I4");
    let made_since = game.find(&stack, find()).await.expect_ok().lobby_id();
    let made_since = game.lobby(&stack, &made_since).await;
    assert_eq!((&made_since.server, made_since.freed_at), (&lobby.server, None));
    assert_eq!(late(&made_since).await, Timestamp::NEVER, "I4");

    stack.clock.advance(Duration::from_secs(1));
    register(Some(30)).await;
    let _answer = game.heartbeat(&stack, "beating").await.expect_ok();
    let lease_until = game.lobby(&stack, &lobby_id).await.lease_until;
    assert_eq!(lease_until, stack.clock.now() + Duration::from_secs(30), "I10: it has a lease again");
}

#[tokio::test]
async fn a_claim_is_refused_by_what_the_lobby_is_not_by_what_the_claimant_knew() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "claims", 1).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let claim = claim_of(&stack, &game, &found);
    let missing = "00000000-0000-0000-0000-000000000001".parse().unwrap();
    let cases = [
        (claim.clone(), Refusal::Full),
        (
            SeatClaim {
                access: Access::Find(game.pool("arena", "nyc"), TagDigests::default()),
                ..claim.clone()
            },
            Refusal::OtherPool,
        ),
        (SeatClaim { lobby_id: missing, ..claim }, Refusal::Missing),
    ];
    for (claim, expected) in cases {
        let outcome = stack.store().take_seat(&claim, stack.clock.now()).await.unwrap();
        assert!(matches!(&outcome, SeatOutcome::Refused(refusal, _) if *refusal == expected), "{outcome:?}");
    }
}

#[tokio::test]
async fn hiding_a_lobby_that_is_not_full_does_nothing() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "hide", 2).await;
    let found = game.find(&stack, find()).await.expect_ok();
    let id = found.lobby_id().parse().unwrap();
    let lobby = stack.store().lobby(&id).await.unwrap().unwrap();
    stack.store().hide_full_lobby(&lobby).await.unwrap();
    assert_eq!(stack.store().lobby(&id).await.unwrap(), Some(lobby));
}

#[tokio::test]
async fn finds_of_a_burst_go_on_when_a_creator_crashed() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "crash", 2).await;
    let first = game.find(&stack, find()).await.expect_ok().lobby_id();
    assert_eq!(game.find(&stack, find()).await.expect_ok().lobby_id(), first);
    // Two finds draw positions and crash: the second one was to create the burst's second lobby.
    let key = HeadKey::new(&game.pool("arena", "fra"), &TagDigests::default(), 2);
    let mut burst = stack.store().burst(&key).await.unwrap().unwrap();
    assert_eq!(burst.first.as_str(), first);
    for positions in [2, 3] {
        burst = stack.store().draw_positions(&key, &burst, 1, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(burst.positions, positions);
    }
    // Another instance knows nothing of all that, and has a position of the lobby that no find creates.
    let found = stack.instance().find(&game.public, &find()).await.unwrap();
    assert_eq!(found.lobby.lobby_id, burst.lobby(1), "I4");
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 2);
}

#[tokio::test]
async fn a_lobby_that_must_be_there_by_now_is_not_waited_for() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "there", 2).await;
    let first = game.find(&stack, find()).await.expect_ok().lobby_id();
    assert_eq!(game.find(&stack, find()).await.expect_ok().lobby_id(), first);
    // The burst is young enough for its lobby to be unknown to the index, and too old for its creator to be
    // at work.
    stack.clock.advance(Duration::from_millis(100));
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&pauses);
    let ambient = stack.ambient().with_sleeper(move |span| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        async {}
    });
    let instance = Instance::over(
        patient_client_over(Arc::clone(stack.stack.store_link())),
        stack.stack.keys(),
        &ambient,
    );
    let found = instance.find(&game.public, &find()).await.unwrap();
    assert_ne!(found.lobby.lobby_id.to_string(), first, "it is full");
    let pauses = pauses.lock().unwrap();
    assert!(pauses.iter().all(Duration::is_zero), "{pauses:?}");
}

#[tokio::test]
async fn a_full_lobby_that_a_crashed_find_left_in_sight_is_put_right() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "stale", 1).await;
    let found = game.find(&stack, find()).await.expect_ok();
    // As a find that crashed between taking the last seat and hiding the lobby leaves it.
    let pool = game.pool("arena", "fra");
    stack.show_from(&found.lobby_id(), stack.clock.now()).await;
    stack.clock.advance(Duration::from_secs(2));
    let now = stack.clock.now();
    assert_eq!(stack.store().candidates(&pool, 1, now, 9).await.unwrap().len(), 1);
    let second = game.find(&stack, find()).await.expect_ok().lobby_id();
    assert_ne!(second, found.lobby_id());
    assert!(
        stack.store().candidates(&pool, 1, now, 9).await.unwrap().is_empty(),
        "both are full and out of sight"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_instances_at_one_instant_make_ten_or_eleven_lobbies() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "instant", 10).await;
    let instances: Vec<_> = (0..100).map(|_| stack.instance()).collect();
    let pool = game.pool("arena", "fra");
    for instance in &instances {
        instance.warm_up(&game.public, &pool).await;
    }
    let body = find();
    let found = join_all(instances.iter().map(|instance| instance.find(&game.public, &body))).await;
    let seats: BTreeSet<_> =
        found.into_iter().map(|found| seat(&stack, &found.unwrap().player.token)).collect();
    assert_eq!(seats.len(), 100);
    let lobbies: BTreeSet<_> = seats.iter().map(|(lobby, _)| lobby).collect();
    assert!((10..=11).contains(&lobbies.len()), "I9: {} lobbies", lobbies.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_under_load_overbook_nothing_and_leave_few_lobbies_open() {
    const INSTANCES: usize = 6;
    const FINDS_EACH: usize = 200;
    let stack = TestStack::start().await;
    let game = arena(&stack, "lanes", 10).await;
    let instances: Vec<_> = (0..INSTANCES).map(|_| stack.instance()).collect();
    let body = find();
    let runs = instances.iter().map(|instance| async {
        let mut seats = Vec::new();
        for _ in 0..FINDS_EACH {
            let found = instance.find(&game.public, &body).await.unwrap();
            seats.push(seat(&stack, &found.player.token));
        }
        seats
    });
    let seats: BTreeSet<_> = join_all(runs).await.into_iter().flatten().collect();
    assert_eq!(seats.len(), INSTANCES * FINDS_EACH);
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let held: BTreeMap<_, _> =
        lobbies.iter().map(|lobby| (lobby.lobby_id.to_string(), lobby.reserved.len())).collect();
    assert!(held.values().all(|seats| *seats <= 10), "I1");
    assert_eq!(held.values().sum::<usize>(), INSTANCES * FINDS_EACH, "I4");
    let optimum = INSTANCES * FINDS_EACH / 10;
    assert!(lobbies.len() <= optimum + 2 * INSTANCES, "{} lobbies, {optimum} would do", lobbies.len());
}

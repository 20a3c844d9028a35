//! Finds that stall between the election of a burst's creator and the creation: they make no second lobby,
//! and one that comes about all the same is counted (I9).

#![expect(clippy::unwrap_used, reason = "code of tests outside of test functions")]

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use harness::{TestClock, TestGame, TestStack, instance::Instance, interference::Before};
use muster_local::emulator::link::{Call, Carried, Link};
use serde_json::json;
use tokio::sync::watch;

/// Longer than a head names a burst before any find may replace it.
const REPLACEABLE: Duration = Duration::from_millis(2_500);
/// So long that others take the burst's lobbies for full.
const OLDER: Duration = Duration::from_millis(500);

struct Scene {
    stack: TestStack,
    game: TestGame,
}

impl Scene {
    async fn start(name: &str) -> Self {
        let stack = TestStack::start().await;
        let mode = json!({ "regions": ["fra"], "max_players": 4 });
        let game = stack.make_game(name, json!({ "arena": mode, "other": mode }), 10_000, 100).await;
        // The server has a part of the limit, so that creations on it refuse each other nothing.
        game.find(&stack, json!({ "game_modes": ["other"] })).await.expect_ok();
        Self { stack, game }
    }

    /// What happens meanwhile: the clock goes on by `stall`, and another instance finds.
    fn another_finds(&self, stall: Duration) -> (impl Future<Output = ()> + Send + 'static, Found) {
        let (clock, other, token) =
            (self.stack.clock.clone(), self.stack.instance(), self.game.public.clone());
        let found = Found::default();
        let noted = Arc::clone(&found);
        let happens = async move {
            clock.advance(stall);
            let seat = lobby_of(&other, &token).await;
            noted.lock().unwrap_or_else(PoisonError::into_inner).push((seat, other.race_creates()));
        };
        (happens, found)
    }

    /// Lobbies of the mode in question.
    async fn lobbies(&self) -> usize {
        let all = self.stack.all_lobbies(self.game.namespace_id()).await;
        all.iter().filter(|lobby| lobby.pool.game_mode.as_str() == "arena").count()
    }
}

/// Lobbies found, and what the instance counted.
type Found = Arc<Mutex<Vec<(String, u64)>>>;

async fn lobby_of(instance: &Instance, token: &str) -> String {
    let found = instance.find(token, &json!({ "game_modes": ["arena"] })).await.unwrap();
    found.lobby.lobby_id.to_string()
}

fn is_election(call: &Call) -> bool {
    call.operation == "UpdateItem"
        && String::from_utf8_lossy(&call.body).contains("#is_announced = :announced")
}

fn is_creation(call: &Call) -> bool {
    call.operation == "TransactWriteItems"
}

#[tokio::test]
async fn a_find_that_stalls_after_its_election_makes_no_second_lobby() {
    for (name, stall) in [("replaceable", REPLACEABLE), ("older", OLDER)] {
        let scene = Scene::start(name).await;
        let (happens, meanwhile) = scene.another_finds(stall);
        let link = Before::response(scene.stack.stack.store_link(), is_election, happens);
        let first = lobby_of(&scene.stack.instance_over(link), &scene.game.public).await;
        let meanwhile = meanwhile.lock().unwrap().clone();
        assert_eq!(meanwhile, [(first, 0)], "I9: {name}");
        assert_eq!(scene.lobbies().await, 1, "I9: {name}");
    }
}

/// A network on which the first creation is under way for so long that its sender gives it up and sends it
/// again. The first copy arrives after another find, the second one after the first.
#[derive(Debug)]
struct Late {
    link: Arc<dyn Link>,
    clock: TestClock,
    game: String,
    other: Arc<Instance>,
    /// The other find's lobby, once the first copy has arrived.
    arrived: watch::Sender<Option<String>>,
    is_sent: Mutex<bool>,
}

impl Link for Late {
    fn carry(&self, call: Call) -> Carried {
        if !is_creation(&call) {
            return self.link.carry(call);
        }
        let link = Arc::clone(&self.link);
        let mut is_sent = self.is_sent.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_sent {
            let mut arrived = self.arrived.subscribe();
            return Box::pin(async move {
                drop(arrived.wait_for(Option::is_some).await.unwrap());
                link.carry(call).await
            });
        }
        *is_sent = true;
        let (clock, token, other) = (self.clock.clone(), self.game.clone(), Arc::clone(&self.other));
        let arrived = self.arrived.clone();
        let _under_way = tokio::spawn(async move {
            clock.advance(REPLACEABLE);
            let seat = lobby_of(&other, &token).await;
            link.carry(call).await.unwrap();
            arrived.send_replace(Some(seat));
        });
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_lobby_created_after_its_burst_was_replaced_is_counted() {
    let scene = Scene::start("late").await;
    let arrived = watch::Sender::new(None);
    let link = Late {
        link: Arc::clone(scene.stack.stack.store_link()),
        clock: scene.stack.clock.clone(),
        game: scene.game.public.clone(),
        other: Arc::new(scene.stack.instance()),
        arrived: arrived.clone(),
        is_sent: Mutex::default(),
    };
    let late = scene.stack.instance_over(link);
    let first = lobby_of(&late, &scene.game.public).await;
    assert_ne!(arrived.borrow().as_deref(), Some(first.as_str()), "the first copy came after its time");
    assert_eq!((scene.lobbies().await, late.race_creates()), (2, 1), "I9: it is counted");
}

#[tokio::test]
async fn a_creation_that_was_sent_in_time_is_given_up_when_its_burst_may_be_replaced() {
    let scene = Scene::start("given-up").await;
    let (happens, meanwhile) = scene.another_finds(REPLACEABLE);
    // The other find goes on although the call at which it began is given up.
    let happens = async move { tokio::spawn(happens).await.unwrap() };
    let link = Before::transaction(scene.stack.stack.store_link(), happens);
    let late = scene.stack.instance_over(link);
    let first = lobby_of(&late, &scene.game.public).await;
    while meanwhile.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        *meanwhile.lock().unwrap(),
        [(first, 0)],
        "whichever was quicker then, the other one joined it"
    );
    assert_eq!((scene.lobbies().await, late.race_creates()), (1, 0), "I9");
}

#[tokio::test]
async fn a_find_draws_no_second_position_of_a_lobby_that_it_saw_full() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 24 });
    let game = stack.make_game("filled", json!({ "arena": mode }), 10_000, 100).await;
    // All but the first without a position.
    for _ in 0..24 {
        game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    }
    assert_eq!(game.live_lobbies(&stack).await, 1);
    let instance = stack.instance();
    lobby_of(&instance, &game.public).await;
    assert_eq!(game.live_lobbies(&stack).await, 2);
    // Settings 2, look 1, head 1, servers 2, position 1, seat 1, head 1, creation 1, count 1.
    assert_eq!(instance.usage().calls, 11);
}

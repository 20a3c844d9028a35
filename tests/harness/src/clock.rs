//! A clock that only tests turn.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use shared::base::ambient::{Ambient, Timestamp};
use tokio::sync::Notify;

/// A clock that only tests turn.
///
/// A pause under it ends when it was turned that far, or when so much time has really passed; a time limit
/// only when it was turned, so that a slow machine reaches none.
#[derive(Clone, Debug)]
pub struct TestClock {
    now: Arc<AtomicU64>,
    turned: Arc<Notify>,
    randomness: Ambient,
}

impl TestClock {
    pub(crate) fn starting_now() -> Self {
        let randomness = Ambient::system();
        let now = Arc::new(AtomicU64::new(randomness.now().0));
        Self { now, turned: Arc::default(), randomness }
    }

    /// The same time and the same randomness in each run.
    pub(crate) fn repeatable() -> Self {
        let chance = Mutex::new(fastrand::Rng::with_seed(1));
        let entropy = move |bytes: &mut [u8]| chance.lock().expect("no panic").fill(bytes);
        let began_at = Timestamp(1_800_000_000_123);
        let now = Arc::new(AtomicU64::new(began_at.0));
        Self { now, turned: Arc::default(), randomness: Ambient::new(move || began_at, entropy) }
    }

    /// The time that the stack sees.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    /// Lets `span` pass.
    pub fn advance(&self, span: Duration) {
        self.now.fetch_add(u64::try_from(span.as_millis()).expect("a short span"), Ordering::SeqCst);
        self.turned.notify_waiters();
    }

    /// The same clock with the system's randomness.
    pub(crate) fn with_system_randomness(&self) -> Self {
        Self { randomness: Ambient::system(), ..self.clone() }
    }

    /// The randomness under this clock.
    pub(crate) fn ambient(&self) -> Ambient {
        let (clock, sleeping, limiting) = (self.clone(), self.clone(), self.clone());
        let pausing = self.randomness.with_clock(move || clock.now()).with_sleeper(move |span| {
            let clock = sleeping.clone();
            let until = clock.now() + span;
            async move {
                let _passed_or_turned = tokio::time::timeout(span, clock.turned_to(until)).await;
            }
        });
        pausing.with_limiter(move |span| {
            let clock = limiting.clone();
            let until = clock.now() + span;
            async move { clock.turned_to(until).await }
        })
    }

    /// Waits until it is `until`.
    pub async fn turned_to(&self, until: Timestamp) {
        loop {
            let turned = self.turned.notified();
            if self.now() >= until {
                return;
            }
            turned.await;
        }
    }
}

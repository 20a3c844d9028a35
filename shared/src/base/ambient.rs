//! The two inputs that no request carries: time, including pauses, and randomness.
//!
//! Everything that needs either takes an [`Ambient`], so tests pass time in and a simulation can seed both.

use std::{
    fmt,
    future::Future,
    ops::Add,
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use futures_util::future::{Either, select};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An instant, in milliseconds since the Unix epoch; the unit of every time in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Later than any time that occurs (the year 5138); stands for "never".
    pub const NEVER: Self = Self(99_999_999_999_999);

    /// Whole seconds since the epoch, rounded down: the unit of JWT claims and of DynamoDB's TTL.
    #[must_use]
    pub const fn secs(self) -> u64 {
        self.0 / 1_000
    }

    /// How long ago `earlier` was; zero when it lies in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` before this one, not before the epoch.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

type Clock = dyn Fn() -> Timestamp + Send + Sync;
type Entropy = dyn Fn(&mut [u8]) + Send + Sync;
type Sleeper = dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// The clock and the source of randomness of an operation.
#[derive(Clone)]
pub struct Ambient {
    clock: Arc<Clock>,
    entropy: Arc<Entropy>,
    sleeper: Arc<Sleeper>,
    /// Sleeps for the span of a time limit.
    limiter: Arc<Sleeper>,
}

impl Ambient {
    /// The machine's clock and its cryptographic randomness.
    #[must_use]
    pub fn system() -> Self {
        let random = SystemRandom::new();
        Self::new(
            || {
                let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp::default() + elapsed
            },
            move |bytes| {
                // Guessable tokens and seats would be worse than a dead process, and no caller could
                // continue.
                #[expect(clippy::expect_used, reason = "without randomness nothing may be issued")]
                random.fill(bytes).expect("the operating system provides randomness");
            },
        )
    }

    /// A clock and randomness of the caller's choice, for tests and simulations.
    pub fn new(
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        entropy: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        Self {
            clock: Arc::new(clock),
            entropy: Arc::new(entropy),
            sleeper: Arc::new(|span| Box::pin(tokio::time::sleep(span))),
            limiter: Arc::new(|span| Box::pin(tokio::time::sleep(span))),
        }
    }

    /// This randomness under another clock.
    #[must_use]
    pub fn with_clock(&self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self.clone() }
    }

    /// This clock and randomness, with pauses of the caller's choice; time limits stay as they are.
    #[must_use]
    pub fn with_sleeper<F: Future<Output = ()> + Send + 'static>(
        &self,
        sleeper: impl Fn(Duration) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { sleeper: Arc::new(move |span| Box::pin(sleeper(span))), ..self.clone() }
    }

    /// This clock and randomness, with time limits of the caller's choice: how [`within`] sleeps for a span.
    #[must_use]
    pub fn with_limiter<F: Future<Output = ()> + Send + 'static>(
        &self,
        limiter: impl Fn(Duration) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { limiter: Arc::new(move |span| Box::pin(limiter(span))), ..self.clone() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Sleeps for `span`.
    pub async fn sleep(&self, span: Duration) {
        (self.sleeper)(span).await;
    }

    /// `N` random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.entropy)(&mut bytes);
        bytes
    }

    /// A random (version 4) UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid()
    }

    /// A random number below `bound`; 0 when `bound` is 0. Biased by less than 2^-32 for bounds of 32 bits.
    #[must_use]
    pub fn below(&self, bound: u64) -> u64 {
        u64::from_le_bytes(self.bytes()).checked_rem(bound).unwrap_or(0)
    }

    /// Removes and returns a random one of `items`.
    pub fn draw<T>(&self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let drawn = usize::try_from(self.below(items.len() as u64)).unwrap_or(0);
        Some(items.swap_remove(drawn))
    }

    /// A pause between half of `span` and all of it, so that losers of one race do not compete again in the
    /// next.
    #[must_use]
    pub fn jittered(&self, span: Duration) -> Duration {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(micros / 2 + self.below(micros / 2 + 1))
    }
}

/// The output of `work` if it ends within `span`. Otherwise drops it and returns `None`.
pub async fn within<T>(ambient: &Ambient, span: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), (ambient.limiter)(span)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

impl fmt::Debug for Ambient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ambient").finish_non_exhaustive()
    }
}

/// An instant on the wire: RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn time(at: Timestamp) -> String {
    let second = DateTime::from_secs(i64::try_from(at.secs()).unwrap_or(i64::MAX));
    // Only a time beyond the year 9999 would fail.
    let second = second.fmt(DateTimeFormat::DateTime).unwrap_or_default();
    format!("{}.{:03}Z", second.trim_end_matches('Z'), at.0 % 1_000)
}

/// An instant of the wire, or any other of RFC 3339; `None` for other text.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let at = DateTime::from_str(text, DateTimeFormat::DateTimeWithOffset).ok()?;
    u64::try_from(at.to_millis().ok()?).ok().map(Timestamp)
}

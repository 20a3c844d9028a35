//! What is simulated: how many players come how fast, when they connect, and how long they stay.

use std::{fmt, ops::RangeInclusive, time::Duration};

/// Lobbies that a namespace may hold at most.
pub const LOBBY_COUNT_MAX: u32 = 32_767;
/// The part of them that the players of a scenario fill: the rest is for lobbies that are not full.
const CAP_SHARE: f64 = 0.65;
/// How long a seat waits for its player, in seconds: what the simulated game's mode says.
pub const RESERVATION_SECS: u32 = 10;
/// Seconds from a find's answer to its player's connection: any time between these, as likely as any other.
const CONNECT_AFTER_SECS: RangeInclusive<f64> = 1.0..=5.0;
/// The part of the players who never connect.
const NEVER_SHARE: f64 = 0.05;
/// How long a player stays who is not in a hurry, on the mean.
pub const STAY_SECS: u32 = 300;
/// The longest stay over the mean one; the shortest is as far below it.
const STAY_MAX_SHARE: f64 = 1.5;
/// The part of a quiet start during which the rate grows.
const GROWTH_SHARE: f64 = 1.0 / 3.0;

/// How the load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The full rate from the first instant, in an empty namespace, with no function warm.
    Spike,
    /// From one find a second, by equal factors in equal times, to the full rate after a third of the time.
    Quiet,
    /// That many finds at one instant, each in a warm instance of its own, and nothing else.
    Burst(u32),
}

/// A scenario; the same one gives the same outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Finds a second at full rate.
    pub rate: u32,
    /// Seats of a lobby.
    pub capacity: u32,
    /// How it begins.
    pub shape: Shape,
    /// How long players come, in seconds.
    pub seconds: u32,
    /// How long players stay at most on the mean, in seconds; less where the cap would not hold them.
    pub stay_secs_max: u32,
    /// What everything random comes from.
    pub seed: u64,
}

/// What becomes of a seat, counted from its find's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When its player connects, if ever.
    pub connects_after: Option<Duration>,
    /// When it is held no more: its player left, or its reservation lapsed.
    pub gone_after: Duration,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, capacity, seconds, .. } = self;
        let stay = self.stay_secs();
        match self.shape {
            Shape::Spike => write!(f, "{rate}/s, capacity {capacity}, spike, {seconds} s; stay {stay:.0} s"),
            Shape::Quiet => write!(f, "{rate}/s, capacity {capacity}, quiet, {seconds} s; stay {stay:.0} s"),
            Shape::Burst(finds) => write!(f, "{finds} at one instant, capacity {capacity}"),
        }
    }
}

impl Scenario {
    /// The mean time between a player's connecting and leaving: as long as players stay, but no longer than
    /// what fills the given part of the cap.
    #[must_use]
    pub fn stay_secs(&self) -> f64 {
        let seats = f64::from(LOBBY_COUNT_MAX) * CAP_SHARE * f64::from(self.capacity);
        let held = seats / f64::from(self.rate.max(1));
        let longest = (held - NEVER_SHARE * f64::from(RESERVATION_SECS)) / (1.0 - NEVER_SHARE) - mean_wait();
        longest.clamp(0.0, f64::from(self.stay_secs_max))
    }

    /// The mean time for which a find's seat is held, whether its player connects or not.
    fn held_secs(&self) -> f64 {
        (1.0 - NEVER_SHARE) * (mean_wait() + self.stay_secs()) + NEVER_SHARE * f64::from(RESERVATION_SECS)
    }

    /// Lobbies that are live at the full rate, when they are full.
    #[must_use]
    pub fn steady_lobbies(&self) -> f64 {
        match self.shape {
            Shape::Burst(finds) => f64::from(finds) / f64::from(self.capacity),
            _ => self.held_secs() * f64::from(self.rate) / f64::from(self.capacity),
        }
    }

    /// Whether as many players leave as come before it ends.
    #[must_use]
    pub fn becomes_steady(&self) -> bool {
        CONNECT_AFTER_SECS.end() + self.stay_secs() * STAY_MAX_SHARE <= f64::from(self.seconds)
    }

    /// How long players come, in milliseconds.
    #[must_use]
    pub const fn length_ms(&self) -> u64 {
        match self.shape {
            Shape::Burst(_) => 1,
            _ => self.seconds as u64 * 1_000,
        }
    }

    /// Players who come in millisecond `ms` of the scenario.
    pub fn arrivals(&self, ms: u64, random: &mut fastrand::Rng) -> u32 {
        let full = f64::from(self.rate);
        let rate = match self.shape {
            Shape::Burst(finds) => return if ms == 0 { finds } else { 0 },
            Shape::Spike => full,
            Shape::Quiet => {
                let grown = ms as f64 / (self.length_ms() as f64 * GROWTH_SHARE);
                full.powf(grown.min(1.0))
            }
        };
        poisson(rate / 1_000.0, random)
    }

    /// What becomes of a seat: most players connect, and stay for between half the mean and one and a half.
    pub fn visit(&self, random: &mut fastrand::Rng) -> Visit {
        if random.f64() < NEVER_SHARE {
            let gone_after = Duration::from_secs(RESERVATION_SECS.into());
            return Visit { connects_after: None, gone_after };
        }
        let (earliest, latest) = CONNECT_AFTER_SECS.into_inner();
        let connects_after = Duration::from_secs_f64(earliest + (latest - earliest) * random.f64());
        let stay = Duration::from_secs_f64(self.stay_secs() * (STAY_MAX_SHARE - 1.0 + random.f64()));
        Visit { connects_after: Some(connects_after), gone_after: connects_after + stay }
    }
}

/// How long a player takes to connect on the mean, in seconds.
const fn mean_wait() -> f64 {
    f64::midpoint(*CONNECT_AFTER_SECS.start(), *CONNECT_AFTER_SECS.end())
}

/// A draw from the Poisson distribution of a small `mean`, by Knuth's product.
fn poisson(mean: f64, random: &mut fastrand::Rng) -> u32 {
    let floor = (-mean).exp();
    let (mut product, mut count) = (random.f64(), 0);
    while product > floor {
        product *= random.f64();
        count += 1;
    }
    count
}

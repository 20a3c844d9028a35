//! What is simulated: how many players come how fast, and how long they stay.

use std::{fmt, time::Duration};

/// Lobbies that a namespace may hold at most.
pub const LOBBY_COUNT_MAX: u32 = 32_767;
/// The part of them that the players of a scenario fill: the rest is for lobbies that are not full.
const CAP_SHARE: f64 = 0.65;
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
    /// The mean time between a find and its player's leaving: what fills the given part of the cap, but not
    /// longer than players stay.
    #[must_use]
    pub fn stay_secs(&self) -> f64 {
        let seats = f64::from(LOBBY_COUNT_MAX) * CAP_SHARE * f64::from(self.capacity);
        (seats / f64::from(self.rate.max(1))).min(f64::from(self.stay_secs_max))
    }

    /// Lobbies that are live at the full rate, when they are full.
    #[must_use]
    pub fn steady_lobbies(&self) -> f64 {
        match self.shape {
            Shape::Burst(finds) => f64::from(finds) / f64::from(self.capacity),
            _ => self.stay_secs() * f64::from(self.rate) / f64::from(self.capacity),
        }
    }

    /// Whether as many players leave as come before it ends.
    #[must_use]
    pub fn becomes_steady(&self) -> bool {
        self.stay_secs() * STAY_MAX_SHARE <= f64::from(self.seconds)
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

    /// How long a player stays: evenly between half the mean and one and a half.
    pub fn stay(&self, random: &mut fastrand::Rng) -> Duration {
        Duration::from_secs_f64(self.stay_secs() * (STAY_MAX_SHARE - 1.0 + random.f64()))
    }
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

//! What is simulated: how many players come how fast, when they connect, and how long they stay.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use serde_json::{Value, json};

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
    /// That many finds at one instant, each in a warm instance of its own. Then the scenario's rate of finds,
    /// for its seconds, if it has some; of those that ask for parties, players alone and pairs.
    Burst(u32),
    /// So many clients that each find again as soon as they are answered, some hundred times in all. Each has
    /// an instance of its own at a time, as in Lambda and the local stack.
    Clients(u32),
}

/// What finds ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// One mode in one region, without tags.
    Plain,
    /// So many modes, in an order of its own.
    Modes(u32),
    /// So many regions, in an order of its own.
    Regions(u32),
    /// So many regions in a row, with latencies from one of them: 20 ms there, 40 ms more for each step away.
    Latencies(u32),
    /// One of so many values of a tag.
    Tags(u32),
    /// Four friends share a code, a tag: one finds with it, the others follow a second apart, or each after
    /// the other of clients that find without pause.
    Codes,
    /// One lobby in two has a size of its own, from two seats to the mode's.
    Sizes,
    /// Parties of one to so many players.
    Parties(u32),
    /// Each of these kinds, with the same probability.
    Mixed,
}

/// Friends with one code.
const FRIENDS: u64 = 4;

impl Asks {
    /// Those of [`Self::Mixed`].
    const EACH: [Self; 8] = [
        Self::Plain,
        Self::Modes(2),
        Self::Modes(3),
        Self::Regions(2),
        Self::Regions(10),
        Self::Tags(5),
        Self::Codes,
        Self::Sizes,
    ];

    /// The modes of the game, and its regions.
    #[must_use]
    pub fn modes_and_regions(self) -> (Vec<String>, Vec<String>) {
        let (modes, regions) = match self {
            Self::Modes(modes) => (modes, 1),
            Self::Regions(regions) | Self::Latencies(regions) => (1, regions),
            Self::Mixed => (3, 10),
            Self::Plain | Self::Tags(_) | Self::Codes | Self::Sizes | Self::Parties(_) => (1, 1),
        };
        let named = |name: &str, count| (0..count).map(|nth| format!("{name}-{nth}")).collect();
        (named("mode", modes), named("region", regions))
    }

    /// The `nth` find of a scenario, counted from 0, and the name of the lobbies that fit it: finds with the
    /// same name share lobbies.
    pub fn find(self, nth: u64, scenario: &Scenario, random: &mut fastrand::Rng) -> (Value, String) {
        let (mut modes, mut regions) = self.modes_and_regions();
        let mut tags = BTreeMap::new();
        let mut size = None;
        match self {
            Self::Mixed => {
                let kind = random.choice(Self::EACH).unwrap_or(Self::Plain);
                return kind.find(nth, scenario, random);
            }
            Self::Plain => {}
            Self::Modes(_) => random.shuffle(&mut modes),
            Self::Regions(_) => random.shuffle(&mut regions),
            Self::Latencies(count) => {
                let home = random.u32(..count);
                let latency = |nth: u32| 20 + 40 * nth.abs_diff(home);
                let latencies: BTreeMap<_, _> = regions.into_iter().zip((0..count).map(latency)).collect();
                let find = json!({ "game_modes": modes, "latencies": latencies });
                return (find, format!("from region {home}"));
            }
            Self::Tags(values) => _ = tags.insert("map", random.u32(..values).to_string()),
            Self::Codes => {
                let apart = match scenario.shape {
                    Shape::Clients(clients) => clients,
                    _ => scenario.rate,
                };
                let apart = u64::from(apart.max(1));
                let code = nth / (FRIENDS * apart) * apart + nth % apart;
                tags.insert("code", code.to_string());
            }
            Self::Sizes => size = random.bool().then(|| random.u32(2..=scenario.capacity)),
            Self::Parties(largest) => {
                let is_late = matches!(scenario.shape, Shape::Burst(finds) if nth >= finds.into());
                let largest = if is_late { 2 } else { largest };
                let find = json!({ "game_modes": modes, "party_size": random.u32(1..=largest) });
                return (find, String::new());
            }
        }
        let name = tags.values().next().cloned().unwrap_or_default();
        (json!({ "game_modes": modes, "regions": regions, "tags": tags, "max_players": size }), name)
    }
}

/// A scenario; the same one gives the same outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Finds a second at full rate.
    pub rate: u32,
    /// Seats of a lobby.
    pub capacity: u32,
    /// Shards of the mode's pool.
    pub shards: u32,
    /// What finds ask for.
    pub asks: Asks,
    /// How it begins.
    pub shape: Shape,
    /// How long players come, in seconds.
    pub seconds: u32,
    /// How long players stay at most on the mean, in seconds; less where the cap would not hold them.
    pub stay_secs_max: u32,
    /// How many times as often as usual clients without pause find.
    pub times: u64,
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
        let Self { rate, capacity, seconds, asks, .. } = self;
        let stay = self.stay_secs();
        if *asks != Asks::Plain {
            write!(f, "{asks:?}, ")?;
        }
        match self.shape {
            Shape::Spike => write!(f, "{rate}/s, capacity {capacity}, spike, {seconds} s; stay {stay:.0} s"),
            Shape::Quiet => write!(f, "{rate}/s, capacity {capacity}, quiet, {seconds} s; stay {stay:.0} s"),
            Shape::Burst(finds) => {
                write!(f, "{finds} at one instant, capacity {capacity}")?;
                if *rate > 0 { write!(f, ", then {rate}/s for {seconds} s") } else { Ok(()) }
            }
            Shape::Clients(clients) => {
                write!(f, "{clients} clients, capacity {capacity}, {} finds", self.client_finds())
            }
        }
    }
}

impl Scenario {
    /// What CI has time for, and what the others vary.
    pub const QUICK: Self = Self {
        rate: 1_000,
        capacity: 10,
        shards: 1,
        asks: Asks::Plain,
        shape: Shape::Spike,
        seconds: 10,
        stay_secs_max: STAY_SECS,
        times: 1,
        seed: 1,
    };

    /// The mean time between a player's connecting and leaving: as long as players stay, but no longer than
    /// what fills the given part of the cap.
    #[must_use]
    pub fn stay_secs(&self) -> f64 {
        let seats = f64::from(LOBBY_COUNT_MAX) * CAP_SHARE * self.players_per_lobby();
        let held = seats / (f64::from(self.rate.max(1)) * self.players_per_find());
        let longest = (held - NEVER_SHARE * f64::from(RESERVATION_SECS)) / (1.0 - NEVER_SHARE) - mean_wait();
        longest.clamp(0.0, f64::from(self.stay_secs_max))
    }

    /// The players of a find on the mean.
    fn players_per_find(&self) -> f64 {
        match self.asks {
            Asks::Parties(largest) => f64::from(1 + largest) / 2.0,
            _ => 1.0,
        }
    }

    /// Players of a full lobby, or one in which nobody else fits.
    fn players_per_lobby(&self) -> f64 {
        match self.asks {
            Asks::Codes | Asks::Mixed => f64::from(self.capacity).min(FRIENDS as f64),
            Asks::Sizes => f64::from(self.capacity) * 0.5,
            _ => f64::from(self.capacity),
        }
    }

    /// Finds of clients that find without pause.
    #[must_use]
    pub fn client_finds(&self) -> u64 {
        let some_lobbies = u64::from(self.capacity) * 33 / 10;
        self.times * some_lobbies.max(if self.asks == Asks::Plain { 200 } else { 1_000 })
    }

    /// The mean time for which a find's seat is held, whether its player connects or not.
    fn held_secs(&self) -> f64 {
        (1.0 - NEVER_SHARE) * (mean_wait() + self.stay_secs()) + NEVER_SHARE * f64::from(RESERVATION_SECS)
    }

    /// Lobbies that are live at the full rate, when they are full.
    #[must_use]
    pub fn steady_lobbies(&self) -> f64 {
        let finds = match self.shape {
            Shape::Burst(finds) => f64::from(finds + self.rate * self.seconds),
            Shape::Clients(..) => self.client_finds() as f64,
            _ => self.held_secs() * f64::from(self.rate),
        };
        finds * self.players_per_find() / self.players_per_lobby()
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
            Shape::Clients(..) => 1,
            Shape::Burst(_) if self.seconds == 0 => 1,
            _ => self.seconds as u64 * 1_000,
        }
    }

    /// Players who come in millisecond `ms` of the scenario.
    pub fn arrivals(&self, ms: u64, random: &mut fastrand::Rng) -> u32 {
        let full = f64::from(self.rate);
        let rate = match self.shape {
            Shape::Burst(finds) | Shape::Clients(finds) if ms == 0 => return finds,
            Shape::Clients(_) => return 0,
            Shape::Burst(_) | Shape::Spike => full,
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

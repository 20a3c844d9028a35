//! What a scenario came to, the table row about it, and the bars that it is held to.

use std::{collections::BTreeMap, fmt::Write as _};

use shared::base::usage::Usage;

use super::{
    scenario::{Asks, Scenario, Shape},
    traffic::Traffic,
};

/// Lobbies of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lobbies {
    /// Created in all.
    pub created: usize,
    /// Created by a packer that knows everything at once.
    pub optimum: usize,
    /// Full at the end.
    pub full: usize,
    /// With some seats taken at the end.
    pub partly_filled: usize,
    /// Live at the end without a player: their end was not written.
    pub empty: usize,
}

/// What came of one minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minute {
    /// Finds that came and were answered or refused.
    pub finds: u64,
    /// Their calls, without the SDK's retries.
    pub usage: Usage,
    /// The most calls of one of them.
    pub calls_max: u64,
    /// The same of those whose instance had found before.
    pub warm_calls_max: u64,
    /// Lobbies created in it.
    pub lobbies_created: usize,
    /// Created in it by a packer that knows everything at once.
    pub lobbies_optimum: usize,
}

/// A measure, and what it may be at most.
#[derive(Clone, Copy, Debug)]
struct Bar {
    what: &'static str,
    of: fn(&Outcome) -> f64,
    most: f64,
    /// Whether it is still missed: then `--quick` leaves it out.
    is_missed: bool,
}

/// The outcome of a scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario.
    pub scenario: Scenario,
    /// Finds that came.
    pub finds: u64,
    /// Finds without an answer half a minute after the last one came.
    pub under_way: u64,
    /// Finds refused, by code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Times of the finds that got a seat, ascending, from when their instance ran.
    pub latencies_ms: Vec<u64>,
    /// Those of the finds that came in the first second.
    pub first_latencies_ms: Vec<u64>,
    /// Minute by minute.
    pub minutes: Vec<Minute>,
    /// Calls of finds.
    pub find: Traffic,
    /// Calls of connects and disconnects.
    pub lobby_servers: Traffic,
    /// Calls of heartbeats.
    pub game_servers: Traffic,
    /// What lobby servers could not get done, by code.
    pub host_refused: BTreeMap<&'static str, u64>,
    /// Lobbies.
    pub lobbies: Lobbies,
    /// The share of the players who, a second after the load, were in lobbies less than a quarter full, the
    /// emptiest one apart.
    pub lonely: f64,
    /// Function instances of find.
    pub instances: usize,
    /// Creations although another lobby was joinable, as find reports them.
    pub race_creates: u64,
}

/// The table's head.
pub const HEAD: &str = "\
| scenario | finds | answered | refused | calls per find | most calls of a find, of one in a warm instance | read, write units per find \
| lobby servers' calls, write units per find | game servers' calls per find | lobbies, over the optimum \
| at the end full, partly, empty | in lobbies less than a quarter full | find p50, p99, p99.9, max ms | p99 of the first second, ms \
| throttled | conflicts | conditions not met | instances | race creates | lobby servers refused |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Seconds from which on a run is shown minute by minute.
const LONG_SECS: u32 = 120;

const ANSWERED: Bar = Bar::new("finds without a seat", Outcome::unanswered, 0.0);
const FIRST_SECOND: Bar =
    Bar::new("p99 of the first second, ms", |outcome| outcome.first_p99_ms() as f64, 80.0).still_missed();
const BURST: [Bar; 2] = [
    Bar::new("most calls of a find", |outcome| outcome.calls_max() as f64, 4.0),
    Bar::new("lobbies beyond the optimum", Outcome::beyond_optimum, 1.0),
];
/// More finds at one instant than the head of their pool takes writes in a second.
const CROWD: [Bar; 2] = [
    Bar::new("calls per find", Outcome::calls_per_find, 8.0),
    Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.05),
];
/// From empty, and where as many players leave as come.
const BUSY: [Bar; 2] = [
    Bar::new("calls per find", Outcome::calls_per_find, 2.0),
    Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.05),
];
/// A launched game on a usual day.
const LIVING: [Bar; 4] = [
    Bar::new("calls per find", Outcome::calls_per_find, 1.6),
    Bar::new("read units per find", |outcome| outcome.per_find(outcome.find.read_units), 0.6),
    Bar::new("write units per find", |outcome| outcome.per_find(outcome.find.write_units), 3.2),
    Bar::new("most calls of a find", |outcome| outcome.calls_max() as f64, 8.0),
];

/// Clients that find without pause, in lobbies of 64 seats and more.
const LARGE: [Bar; 2] = [
    Bar::new("lobbies beyond the optimum", Outcome::beyond_optimum, 2.0),
    Bar::new("players in lobbies less than a quarter full, %", |outcome| outcome.lonely * 100.0, 2.0),
];
/// Such clients that ask for several modes or regions, or tags.
const SEVERAL: [Bar; 2] = [
    Bar::new("calls per find", Outcome::calls_per_find, 1.8),
    Bar::new("read units per find", |outcome| outcome.per_find(outcome.find.read_units), 1.0),
];
const ANY_ORDER: [Bar; 2] = [
    Bar::new("calls per find", Outcome::calls_per_find, 2.0),
    Bar::new("read units per find", |outcome| outcome.per_find(outcome.find.read_units), 1.2),
];
const TAGS: [Bar; 3] = [
    Bar::new("calls per find", Outcome::calls_per_find, 2.0).still_missed(),
    Bar::new("read units per find", |outcome| outcome.per_find(outcome.find.read_units), 0.8),
    Bar::new("write units per find", |outcome| outcome.per_find(outcome.find.write_units), 3.2),
];
const CODES: [Bar; 3] = [
    Bar::new("calls per find", Outcome::calls_per_find, 3.2),
    Bar::new("read units per find", |outcome| outcome.per_find(outcome.find.read_units), 0.8),
    Bar::new("write units per find", |outcome| outcome.per_find(outcome.find.write_units), 4.8),
];

/// Parties of one to four at a thousand finds a second, and at one instant.
const PARTIES: [Bar; 2] = [
    Bar::new("calls per find", Outcome::calls_per_find, 1.4).still_missed(),
    Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.13),
];
const PARTIES_AT_ONCE: [Bar; 2] = [
    Bar::new("most calls of a find", |outcome| outcome.calls_max() as f64, 5.0),
    Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.13),
];
/// More finds than a pool's head takes: some are refused.
const LAUNCH: [Bar; 2] = [
    Bar::new("finds without a seat, %", |outcome| outcome.unanswered() * 100.0 / outcome.finds as f64, 1.0),
    Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.13),
];
/// Parties at one instant, and players alone and pairs of the next two seconds.
const PARTIES_AND_LATER: [Bar; 1] = [Bar::new("lobbies over the optimum", Outcome::over_optimum, 1.05)];

impl Minute {
    /// Counts a find with `usage`, which is warm if its instance had found before.
    pub fn count(&mut self, usage: Usage, is_warm: bool) {
        self.finds += 1;
        self.usage.calls += usage.calls;
        self.usage.read_units += usage.read_units;
        self.usage.write_units += usage.write_units;
        self.calls_max = self.calls_max.max(usage.calls);
        if is_warm {
            self.warm_calls_max = self.warm_calls_max.max(usage.calls);
        }
    }
}

impl Bar {
    const fn new(what: &'static str, of: fn(&Outcome) -> f64, most: f64) -> Self {
        Self { what, of, most, is_missed: false }
    }

    const fn still_missed(self) -> Self {
        Self { is_missed: true, ..self }
    }
}

/// The percentile of ascending times that so many of a thousand are below.
fn percentile(times_ms: &[u64], per_mille: usize) -> u64 {
    let last = times_ms.len().saturating_sub(1);
    times_ms.get((times_ms.len() * per_mille / 1_000).min(last)).copied().unwrap_or_default()
}

impl Outcome {
    /// The 99th percentile of the times of the finds that came in the first second.
    #[must_use]
    pub fn first_p99_ms(&self) -> u64 {
        percentile(&self.first_latencies_ms, 990)
    }

    /// The most calls of one find, without the SDK's repetitions.
    #[must_use]
    pub fn calls_max(&self) -> u64 {
        self.minutes.iter().map(|minute| minute.calls_max).max().unwrap_or_default()
    }

    /// The same of those whose instance had found before.
    #[must_use]
    pub fn warm_calls_max(&self) -> u64 {
        self.minutes.iter().map(|minute| minute.warm_calls_max).max().unwrap_or_default()
    }

    /// Finds that got no seat.
    fn unanswered(&self) -> f64 {
        (self.finds - self.latencies_ms.len() as u64) as f64
    }

    /// Calls of find for each find.
    #[must_use]
    pub fn calls_per_find(&self) -> f64 {
        self.per_find(self.find.calls as f64)
    }

    /// Lobbies created over the optimum.
    #[must_use]
    pub fn over_optimum(&self) -> f64 {
        self.lobbies.created as f64 / self.lobbies.optimum.max(1) as f64
    }

    fn beyond_optimum(&self) -> f64 {
        self.lobbies.created.saturating_sub(self.lobbies.optimum) as f64
    }

    /// The design's bars for such a scenario, if it has any.
    fn bars(&self) -> Vec<Bar> {
        let Scenario { rate, capacity, shape, asks, .. } = self.scenario;
        if let Shape::Clients(..) = shape {
            let own: &[Bar] = match asks {
                Asks::Plain if capacity >= 64 => &LARGE,
                Asks::Modes(2) | Asks::Regions(2) => &SEVERAL,
                Asks::Modes(3) => &ANY_ORDER,
                Asks::Tags(5) => &TAGS,
                Asks::Codes => &CODES,
                _ => &[],
            };
            return [&[ANSWERED], own].concat();
        }
        let is_steady = self.scenario.becomes_steady();
        let own: &[Bar] = match (shape, rate, capacity) {
            (Shape::Burst(_), 0, _) if asks == Asks::Parties(4) => &PARTIES_AT_ONCE,
            (Shape::Burst(_), ..) if asks == Asks::Parties(4) => &PARTIES_AND_LATER,
            (Shape::Spike, 1_000, 10) if asks == Asks::Parties(4) => &PARTIES,
            _ if asks != Asks::Plain => &[],
            (Shape::Burst(..=100), ..) => &BURST,
            (Shape::Burst(..=1_000), ..) => &CROWD,
            (Shape::Spike, 2_000, 100) => &LAUNCH,
            (_, 120, 8) if is_steady => &LIVING,
            (_, 250 | 5_000, 10) if is_steady => &BUSY,
            (_, 1_000, 10) => &BUSY,
            _ => &[],
        };
        let answered: &[Bar] = if own.is_empty() || rate > 1_000 { &[] } else { &[ANSWERED] };
        let is_thousand_at_once = (shape, rate, capacity, asks) == (Shape::Spike, 1_000, 10, Asks::Plain);
        let first: &[Bar] = if is_thousand_at_once { &[FIRST_SECOND] } else { &[] };
        [answered, own, first].concat()
    }

    /// The bars that it misses, a line each; without those that are known to be missed when it is `--quick`.
    #[must_use]
    pub fn missed(&self, is_quick: bool) -> Vec<String> {
        let bars = self.bars().into_iter().filter(|bar| !(is_quick && bar.is_missed));
        let missed = bars.map(|bar| (bar, (bar.of)(self))).filter(|(bar, measured)| *measured > bar.most);
        let line = |(bar, measured): (Bar, f64)| {
            format!("missed: {}: {} {measured:.3}, bar {}", self.scenario, bar.what, bar.most)
        };
        missed.map(line).collect()
    }

    /// A table of a long run, minute by minute.
    #[must_use]
    pub fn by_minute(&self) -> Option<String> {
        if self.scenario.seconds < LONG_SECS {
            return None;
        }
        let head = "| minute | finds | calls, read units, write units per find | most calls of a find \
                    | lobbies made, by the optimum |\n|---|---|---|---|---|";
        let mut table = format!("{}, minute by minute:\n\n{head}", self.scenario);
        for (number, minute) in self.minutes.iter().enumerate() {
            let Minute { finds, usage, calls_max, lobbies_created, lobbies_optimum, .. } = minute;
            let per_find = |count: f64| count / (*finds).max(1) as f64;
            let (calls, read, write) =
                (per_find(usage.calls as f64), per_find(usage.read_units), per_find(usage.write_units));
            let _infallible = write!(
                table,
                "\n| {} | {finds} | {calls:.2}, {read:.2}, {write:.2} | {calls_max} \
                 | {lobbies_created}, {lobbies_optimum} |",
                number + 1
            );
        }
        Some(table)
    }

    fn per_find(&self, count: f64) -> f64 {
        count / self.finds.max(1) as f64
    }

    /// The row.
    #[must_use]
    pub fn row(&self) -> String {
        let Self { scenario, finds, find, lobby_servers, game_servers, lobbies, .. } = self;
        let mut refused = listed(self.refused.iter());
        if self.under_way > 0 {
            let _infallible = write!(refused, " ({} without answer)", self.under_way);
        }
        let all = |counts: fn(&Traffic) -> &BTreeMap<String, u64>| {
            let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
            for traffic in [find, lobby_servers, game_servers] {
                for (kind, count) in counts(traffic) {
                    *sums.entry(kind).or_default() += count;
                }
            }
            listed(sums.iter())
        };
        format!(
            "| {scenario} | {finds} | {} | {refused} | {:.2} | {}, {} | {:.2}, {:.2} | {:.2}, {:.2} | {:.2} \
             | {}, {:.3} | {}, {}, {} | {:.1} % | {}, {}, {}, {} | {} | {} | {} | {} | {} | {} | {} |",
            self.latencies_ms.len(),
            self.calls_per_find(),
            self.calls_max(),
            self.warm_calls_max(),
            self.per_find(find.read_units),
            self.per_find(find.write_units),
            self.per_find(lobby_servers.calls as f64),
            self.per_find(lobby_servers.write_units),
            self.per_find(game_servers.calls as f64),
            lobbies.created,
            self.over_optimum(),
            lobbies.full,
            lobbies.partly_filled,
            lobbies.empty,
            self.lonely * 100.0,
            percentile(&self.latencies_ms, 500),
            percentile(&self.latencies_ms, 990),
            percentile(&self.latencies_ms, 999),
            percentile(&self.latencies_ms, 1_000),
            self.first_p99_ms(),
            all(|traffic| &traffic.throttles),
            all(|traffic| &traffic.conflicts),
            all(|traffic| &traffic.unmet),
            self.instances,
            self.race_creates,
            listed(self.host_refused.iter()),
        )
    }
}

fn listed<K: std::fmt::Display, V: std::fmt::Display>(counts: impl Iterator<Item = (K, V)>) -> String {
    let list: Vec<String> = counts.map(|(what, count)| format!("{what} {count}")).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(", ") }
}

//! What a scenario came to, and the table row about it.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    scenario::{Scenario, Shape},
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
    /// The most calls of one find, without the SDK's repetitions.
    pub calls_max: u64,
    /// What finds asked.
    pub find: Traffic,
    /// What connections and disconnections asked.
    pub lobby_servers: Traffic,
    /// What heartbeats asked.
    pub game_servers: Traffic,
    /// What lobby servers could not get done, by code.
    pub host_refused: BTreeMap<&'static str, u64>,
    /// Lobbies.
    pub lobbies: Lobbies,
    /// Function instances of find.
    pub instances: usize,
    /// Creations although another lobby was joinable, as find reports them.
    pub race_creates: u64,
}

/// The table's head; each bar stands beside its measure.
pub const HEAD: &str = "\
| scenario | finds | answered | refused | calls per find (at 1,000/s, capacity 10: <= 2 from empty, <= 3 steady) | most calls of a find (<= 4 in the burst) \
| read, write units per find | lobby servers' calls, write units per find | game servers' calls per find \
| lobbies, over the optimum (<= 1.05, steady <= 1.10) | at the end full, partly, empty | find p50, p99, max ms | throttled | conflicts \
| conditions not met | instances | race creates | lobby servers refused |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

impl Outcome {
    /// The `percent`-th percentile of the finds' times.
    #[must_use]
    pub fn latency_ms(&self, percent: usize) -> u64 {
        let last = self.latencies_ms.len().saturating_sub(1);
        self.latencies_ms
            .get((self.latencies_ms.len() * percent / 100).min(last))
            .copied()
            .unwrap_or_default()
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

    /// Whether the design's bars are met, where it has any for the scenario.
    #[must_use]
    pub fn meets_bars(&self) -> bool {
        let are_all_answered = self.latencies_ms.len() as u64 == self.finds;
        match self.scenario {
            Scenario { shape: Shape::Burst(_), .. } => {
                are_all_answered && self.calls_max <= 4 && self.lobbies.created <= self.lobbies.optimum + 1
            }
            Scenario { rate: 1_000, capacity: 10, .. } if self.scenario.becomes_steady() => {
                are_all_answered && self.calls_per_find() <= 3.0 && self.over_optimum() <= 1.10
            }
            Scenario { rate: 1_000, capacity: 10, .. } => {
                are_all_answered && self.calls_per_find() <= 2.0 && self.over_optimum() <= 1.05
            }
            _ => true,
        }
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
            "| {scenario} | {finds} | {} | {refused} | {:.2} | {} | {:.2}, {:.2} | {:.2}, {:.2} | {:.2} \
             | {}, {:.3} | {}, {}, {} | {}, {}, {} | {} | {} | {} | {} | {} | {} |",
            self.latencies_ms.len(),
            self.calls_per_find(),
            self.calls_max,
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
            self.latency_ms(50),
            self.latency_ms(99),
            self.latency_ms(100),
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

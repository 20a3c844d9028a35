//! The console's budget of reads, for a deployment where reads cost money.

use std::{collections::VecDeque, time::Duration};

use shared::base::{ambient::Timestamp, usage::Usage};

use crate::prices::{
    API_REQUESTS, LAMBDA_GB_SECONDS, LAMBDA_REQUESTS, METRIC_READS, READ_UNITS, WRITE_UNITS, gb_seconds,
};

/// Read units per minute for everything that one console watches. A thousand lobbies take some 520 units:
/// they are read about every ten seconds, more lobbies less often.
pub const READ_UNITS_A_MINUTE: f64 = 3_000.0;

const MINUTE: Duration = Duration::from_secs(60);

/// Recent reads, and when the next may begin.
#[derive(Debug, Default)]
pub struct Budget {
    free_at: Timestamp,
    spent: VecDeque<Spent>,
}

#[derive(Clone, Copy, Debug)]
struct Spent {
    at: Timestamp,
    read_units: f64,
    metrics: f64,
}

impl Budget {
    /// Notes that `units` were read at `now`; when the next look may begin.
    pub fn spend(&mut self, now: Timestamp, units: f64) -> Timestamp {
        let paid_by = Duration::from_secs_f64(units.max(0.0) / READ_UNITS_A_MINUTE * MINUTE.as_secs_f64());
        self.free_at = self.free_at.max(now) + paid_by;
        self.note(Spent { at: now, read_units: units, metrics: 0.0 });
        self.free_at
    }

    /// Notes that `metrics` of CloudWatch were read at `now`.
    pub fn spend_metrics(&mut self, now: Timestamp, metrics: usize) {
        self.note(Spent { at: now, read_units: 0.0, metrics: metrics as f64 });
    }

    /// Read units of the last minute.
    pub fn units_a_minute(&mut self, now: Timestamp) -> f64 {
        self.forget(now);
        self.spent.iter().map(|spent| spent.read_units).sum()
    }

    /// What an hour like the last minute costs, in dollars.
    pub fn dollars_an_hour(&mut self, now: Timestamp) -> f64 {
        let read_units = self.units_a_minute(now);
        let metrics: f64 = self.spent.iter().map(|spent| spent.metrics).sum();
        dollars_an_hour(read_units) + METRIC_READS.of(metrics * 60.0)
    }

    fn note(&mut self, spent: Spent) {
        self.spent.push_back(spent);
        self.forget(spent.at);
    }

    fn forget(&mut self, now: Timestamp) {
        while self.spent.front().is_some_and(|spent| spent.at + MINUTE <= now) {
            self.spent.pop_front();
        }
    }
}

/// What `usage` of DynamoDB costs on demand, in dollars.
#[must_use]
pub fn dollars(usage: Usage) -> f64 {
    READ_UNITS.of(usage.read_units) + WRITE_UNITS.of(usage.write_units)
}

/// The cost in dollars of a number of requests with this `usage`: DynamoDB, Lambda and the HTTP API, without
/// logs and metrics.
#[must_use]
pub fn dollars_in_all(requests: u64, usage: Usage) -> f64 {
    let count = requests as f64;
    dollars(usage)
        + API_REQUESTS.of(count)
        + LAMBDA_REQUESTS.of(count)
        + LAMBDA_GB_SECONDS.of(gb_seconds(count, usage.calls as f64))
}

/// What so many read units a minute cost an hour, in dollars.
#[must_use]
pub fn dollars_an_hour(units_a_minute: f64) -> f64 {
    READ_UNITS.of(units_a_minute * 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of `units` each, as often as allowed, for ten minutes: the units of the busiest minute.
    fn busiest_minute(units: f64) -> f64 {
        let (mut budget, mut now) = (Budget::default(), Timestamp(1_000_000));
        let (end, mut most) = (now + 10 * MINUTE, 0.0_f64);
        while now < end {
            now = budget.spend(now, units).max(now + Duration::from_secs(2));
            most = most.max(budget.units_a_minute(now));
        }
        most
    }

    #[test]
    fn a_thousand_lobbies_are_looked_at_within_the_budget() {
        let most = busiest_minute(513.0);
        assert!(most <= READ_UNITS_A_MINUTE && most > READ_UNITS_A_MINUTE / 2.0, "{most}");
    }

    #[test]
    fn more_lobbies_are_looked_at_less_often() {
        let (mut budget, now) = (Budget::default(), Timestamp(1_000_000));
        assert_eq!(budget.spend(now, 6_000.0), now + 2 * MINUTE);
        assert_eq!(budget.spend(now, 3_000.0), now + 3 * MINUTE, "looks at several namespaces share it");
        assert!(budget.units_a_minute(now + MINUTE) < 1.0);
    }

    #[test]
    fn few_lobbies_are_looked_at_as_often_as_one_likes() {
        let (mut budget, now) = (Budget::default(), Timestamp(1_000_000));
        assert!(budget.spend(now, 5.0) < now + Duration::from_secs(1));
    }

    #[test]
    fn a_request_costs_in_all_what_the_page_of_counted_ones_says() {
        let page = include_str!("../../../tests/bench/cost.md");
        let row = page.lines().find(|line| line.starts_with("| connected |")).unwrap();
        let cells: Vec<f64> = row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
        let (calls, read_units, write_units) = (cells[0] as u64, cells[1], cells[2]);
        let million = dollars_in_all(1, Usage { calls, read_units, write_units }) * 1e6;
        assert!((million - cells.last().unwrap()).abs() < 0.005, "{million}, {cells:?}");
    }

    #[test]
    fn the_full_budget_costs_some_two_cents_an_hour() {
        let (mut budget, now) = (Budget::default(), Timestamp(1_000_000));
        budget.spend(now, READ_UNITS_A_MINUTE);
        assert!((budget.dollars_an_hour(now) - 0.0225).abs() < 1e-9);
        budget.spend_metrics(now, 5);
        assert!((budget.dollars_an_hour(now) - 0.0255).abs() < 1e-9, "five metrics, sixty times");
        assert!(budget.dollars_an_hour(now + MINUTE).abs() < 1e-9);
    }
}

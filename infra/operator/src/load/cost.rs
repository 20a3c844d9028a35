//! The DynamoDB usage of a load's requests, as counted (`tests/bench/cost.md`), and their cost.

use std::{
    iter::Sum,
    ops::{Add, Sub},
};

use muster_console::{
    budget,
    prices::{API_REQUESTS, LAMBDA_GB_SECONDS, LAMBDA_REQUESTS, gb_seconds},
};
use serde::Serialize;
use shared::base::usage::Usage;

/// Requests, and what they take of DynamoDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spent {
    pub requests: f64,
    pub calls: f64,
    pub read_units: f64,
    pub write_units: f64,
}

impl Spent {
    /// One request.
    const fn once(calls: f64, read_units: f64, write_units: f64) -> Self {
        Self { requests: 1.0, calls, read_units, write_units }
    }

    /// Requests that took `usage` together.
    pub fn of(requests: u64, usage: Usage) -> Self {
        let Usage { calls, read_units, write_units } = usage;
        Self { requests: requests as f64, calls: calls as f64, read_units, write_units }
    }

    /// So many of it.
    pub fn times(self, count: f64) -> Self {
        Self {
            requests: self.requests * count,
            calls: self.calls * count,
            read_units: self.read_units * count,
            write_units: self.write_units * count,
        }
    }

    /// The AWS charge in dollars, at the list prices of us-east-1: DynamoDB on demand, Lambda and HTTP API,
    /// without data sent, logs, metrics and traces.
    pub fn dollars(self) -> f64 {
        let Self { requests, calls, read_units, write_units } = self;
        budget::dollars(Usage { calls: 0, read_units, write_units })
            + LAMBDA_REQUESTS.of(requests)
            + LAMBDA_GB_SECONDS.of(gb_seconds(requests, calls))
            + API_REQUESTS.of(requests)
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            calls: self.calls + other.calls,
            read_units: self.read_units + other.read_units,
            write_units: self.write_units + other.write_units,
        }
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other.times(-1.0)
    }
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// A registration of a game server.
pub(crate) const REGISTER: Spent = Spent::once(3.0, 1.0, 6.0);
/// A player that connects.
pub(crate) const CONNECT: Spent = Spent::once(1.0, 0.0, 1.0);
/// A player that leaves a full lobby, which most lobbies are: finds take the fullest.
pub(crate) const DISCONNECT: Spent = Spent::once(2.0, 0.0, 4.0);
/// What the last player takes more, whose lobby ends.
pub(crate) const END: Spent = Spent { requests: 0.0, calls: 0.0, read_units: 0.0, write_units: 3.0 };
/// A find that is refused again: a client at its cap, with a seat in each of eight lobbies.
pub(crate) const REFUSED: Spent = Spent::once(2.0, 5.0, 0.0);
/// The usage of ending a lobby when its game server deregisters.
const END_BY_SERVER: Spent = Spent { requests: 0.0, calls: 2.0, read_units: 1.0, write_units: 8.0 };

/// The usage of a find among lobbies with this number of `seats`, in a steady state: most lobbies are full,
/// so that the find takes a last seat.
pub(crate) fn find(seats: u32) -> Spent {
    Spent::once(1.1, 0.1, 2.0 + 9.0 / f64::from(seats))
}

/// A heartbeat that lists `lobbies`.
pub(crate) fn heartbeat(lobbies: usize) -> Spent {
    let lobbies = lobbies as f64;
    Spent::once(3.0 + lobbies, 0.5 + 0.5 * lobbies, 1.0 + lobbies)
}

/// A deregistration of a game server that ends `lobbies`.
pub(crate) fn deregister(lobbies: usize) -> Spent {
    Spent::once(3.0, 1.5, 2.0) + END_BY_SERVER.times(lobbies as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The units of an operation on the page of counted ones.
    fn counted(operation: &str) -> Spent {
        let page = include_str!("../../../../tests/bench/cost.md");
        let row = page.lines().find(|line| line.starts_with(&format!("| {operation} |"))).unwrap();
        let mut numbers = row.split('|').skip(2).map(|cell| cell.trim().parse().unwrap_or_default());
        let mut next = || numbers.next().unwrap();
        Spent::once(next(), next(), next())
    }

    #[test]
    fn units_are_those_of_the_page_of_counted_ones() {
        assert_eq!(counted("register a game server"), REGISTER);
        assert_eq!(counted("connected"), CONNECT);
        assert_eq!(counted("disconnected from a full lobby"), DISCONNECT);
        assert_eq!(counted("disconnected as the last player"), DISCONNECT + END);
        assert_eq!(counted("heartbeat of a server of 20 lobbies"), heartbeat(20));
        assert_eq!(counted("find: a client with seats in eight lobbies; again"), REFUSED);
        // A find there is into lobbies that fill, and dearer into full ones.
        let filling = counted("find: the mean of ten a second into lobbies of ten").write_units;
        let last_seat = counted("find: takes the last seat, which it saw left").write_units;
        assert!((filling..=last_seat).contains(&find(10).write_units), "{filling} {last_seat}");
    }

    #[test]
    fn a_million_requests_cost_what_the_page_says() {
        let million = CONNECT.times(1e6).dollars();
        assert!((million - 1.84).abs() < 0.005, "{million}");
        let million = DISCONNECT.times(1e6).dollars();
        assert!((million - 3.72).abs() < 0.005, "{million}");
    }
}

//! The responses to a load: results by operation, times, and the usage of the requests.

use std::{collections::BTreeMap, time::Duration};

use shared::{
    base::usage::Usage,
    wire::explanation::{Explanation, Reason},
};

use crate::load::cost::Spent;

/// The calls of a load, by operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Register,
    Heartbeat,
    Find,
    Connect,
    Disconnect,
    Deregister,
}

impl Call {
    pub const ALL: [Self; 6] =
        [Self::Register, Self::Heartbeat, Self::Find, Self::Connect, Self::Disconnect, Self::Deregister];

    /// The name of its function.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "register-server",
            Self::Heartbeat => "heartbeat-server",
            Self::Find => "find-lobby",
            Self::Connect => "connect-player",
            Self::Disconnect => "disconnect-player",
            Self::Deregister => "deregister-server",
        }
    }

    /// Its path; the method is POST.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Register => "/matchmaker/servers/register",
            Self::Heartbeat => "/matchmaker/servers/heartbeat",
            Self::Find => "/matchmaker/lobbies/find",
            Self::Connect => "/matchmaker/players/connected",
            Self::Disconnect => "/matchmaker/players/disconnected",
            Self::Deregister => "/matchmaker/servers/deregister",
        }
    }
}

/// A success among the results.
pub(crate) const OK: &str = "200";
/// A request without a response.
pub(crate) const NO_RESPONSE: &str = "no response";
/// A success whose response is not Muster's.
pub(crate) const UNREADABLE: &str = "200 unreadable";

/// The results so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Results by operation and status with code.
    pub results: BTreeMap<Call, BTreeMap<String, u64>>,
    /// What the requests took, as responses or the page of counted units say.
    pub spent: BTreeMap<Call, Spent>,
    /// From when each find was due to its result, refusals included.
    pub finds: Vec<Duration>,
    /// The time of each request that connected a player.
    pub connects: Vec<Duration>,
    /// Players for whom no find was sent, because too many requests were under way.
    pub not_sent: u64,
    /// Players whose lobby no heartbeat listed in time.
    pub not_listed: u64,
    /// Players who got a seat in a lobby of another game server.
    pub elsewhere: u64,
    /// Lobbies that finds created.
    pub created: u64,
    /// Seats that finds lost to other finds between read and write.
    pub races_lost: u64,
    /// Why the first request without a response, or without a response of Muster's, failed.
    pub problem: Option<String>,
}

impl Tally {
    /// Counts a request.
    pub fn count(&mut self, operation: Call, result: &str, spent: Spent) {
        *self.results.entry(operation).or_default().entry(result.to_owned()).or_default() += 1;
        let sum = self.spent.entry(operation).or_default();
        *sum = *sum + spent;
    }

    /// Notes how a find came out.
    pub fn explain(&mut self, explanation: &Explanation) {
        self.created += u64::from(explanation.created);
        self.races_lost += explanation.refused.get(&Reason::RaceLost).copied().unwrap_or_default() as u64;
    }

    /// Requests of an operation with a result.
    pub fn of(&self, operation: Call, result: &str) -> u64 {
        let results = self.results.get(&operation);
        results.and_then(|results| results.get(result)).copied().unwrap_or_default()
    }

    /// Requests of an operation.
    pub fn all(&self, operation: Call) -> u64 {
        self.results.get(&operation).into_iter().flat_map(BTreeMap::values).sum()
    }
}

/// The units of an explanation.
pub(crate) fn explained(explanation: &Explanation) -> Spent {
    let Explanation { calls, read_units, write_units, .. } = *explanation;
    Spent::of(1, Usage { calls, read_units, write_units })
}

/// The 50th, 90th and 99th percentiles of `times`, and the longest; `None` without times.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> Option<[Duration; 4]> {
    times.sort_unstable();
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100);
        times.get(rank.checked_sub(1)?).copied()
    };
    Some([at(50)?, at(90)?, at(99)?, at(100)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let millis = Duration::from_millis;
        assert_eq!(percentiles(Vec::new()), None);
        assert_eq!(percentiles(vec![millis(7)]), Some([millis(7); 4]));
        // In any order; the one slow of a hundred is only the largest, and of two hundred two are beyond p99.
        let hundred: Vec<_> = (1..=100).rev().map(millis).collect();
        assert_eq!(percentiles(hundred), Some([50, 90, 99, 100].map(millis)));
        let two: Vec<_> = (1..=200).map(millis).collect();
        assert_eq!(percentiles(two), Some([100, 180, 198, 200].map(millis)));
        assert_eq!(percentiles(vec![millis(1), millis(2)]), Some([1, 2, 2, 2].map(millis)));
    }

    #[test]
    fn requests_are_counted_by_operation_and_result() {
        let mut tally = Tally::default();
        let once = Spent { requests: 1.0, ..Spent::default() };
        tally.count(Call::Find, OK, once);
        tally.count(Call::Find, OK, once);
        tally.count(Call::Find, "429", once);
        tally.count(Call::Connect, OK, once);
        assert_eq!((tally.of(Call::Find, OK), tally.of(Call::Find, "429")), (2, 1));
        assert_eq!((tally.all(Call::Find), tally.all(Call::Disconnect)), (3, 0));
        assert_eq!(tally.spent[&Call::Find].requests, 3.0);
    }
}

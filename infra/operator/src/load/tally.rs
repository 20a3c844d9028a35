//! The responses to a load: results by operation, times, and the usage of the requests.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use hyper::Method;
use shared::{
    base::usage::Usage,
    models::ids::LobbyId,
    wire::explanation::{Explanation, Reason},
};

use crate::load::{cost::Spent, sources::Source};

/// The calls of a load, by operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Register,
    Heartbeat,
    Find,
    Connect,
    Disconnect,
    Deregister,
    Join,
    Create,
    List,
}

impl Call {
    /// Those of each load.
    pub const ALL: [Self; 6] =
        [Self::Register, Self::Heartbeat, Self::Find, Self::Connect, Self::Disconnect, Self::Deregister];
    /// Those of hostile clients besides.
    pub const HOSTILE: [Self; 3] = [Self::Join, Self::Create, Self::List];

    /// The name of its function.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "register-server",
            Self::Heartbeat => "heartbeat-server",
            Self::Find => "find-lobby",
            Self::Connect => "connect-player",
            Self::Disconnect => "disconnect-player",
            Self::Deregister => "deregister-server",
            Self::Join => "join-lobby",
            Self::Create => "create-lobby",
            Self::List => "list-lobbies",
        }
    }

    /// Its method.
    pub const fn method(self) -> Method {
        match self {
            Self::List => Method::GET,
            _ => Method::POST,
        }
    }

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Register => "/matchmaker/servers/register",
            Self::Heartbeat => "/matchmaker/servers/heartbeat",
            Self::Find => "/matchmaker/lobbies/find",
            Self::Connect => "/matchmaker/players/connected",
            Self::Disconnect => "/matchmaker/players/disconnected",
            Self::Deregister => "/matchmaker/servers/deregister",
            Self::Join => "/matchmaker/lobbies/join",
            Self::Create => "/matchmaker/lobbies/create",
            Self::List => "/matchmaker/lobbies/list",
        }
    }
}

/// The kinds of hostile requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A find whose player never connects.
    Find,
    /// The same with a new tag each time, so that each needs a lobby of its own.
    Tag,
    /// A private lobby.
    Create,
    /// A join into a lobby that a player of the load got.
    Join,
    /// A list with states.
    List,
    /// A find whose body has the wrong type.
    WrongBody,
    /// A find with a forged token.
    ForgedToken,
}

impl Kind {
    pub const ALL: [Self; 7] =
        [Self::Find, Self::Tag, Self::Create, Self::Join, Self::List, Self::WrongBody, Self::ForgedToken];

    /// Its name among other requests.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Find => "hostile finds",
            Self::Tag => "hostile tags",
            Self::Create => "hostile creates",
            Self::Join => "hostile joins",
            Self::List => "hostile lists",
            Self::WrongBody => "wrong bodies",
            Self::ForgedToken => "forged tokens",
        }
    }

    /// Its name among hostile requests.
    pub fn name(self) -> &'static str {
        self.title().trim_start_matches("hostile ")
    }

    /// Its operation.
    pub const fn call(self) -> Call {
        match self {
            Self::Find | Self::Tag | Self::WrongBody | Self::ForgedToken => Call::Find,
            Self::Create => Call::Create,
            Self::Join => Call::Join,
            Self::List => Call::List,
        }
    }

    /// Whether a success gives a seat.
    pub const fn takes_seats(self) -> bool {
        matches!(self, Self::Find | Self::Tag | Self::Create | Self::Join)
    }
}

/// The answers to hostile requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attack {
    /// By kind and status with code.
    pub results: BTreeMap<Kind, BTreeMap<String, u64>>,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// The addresses that they came from.
    pub sources: BTreeSet<Source>,
    /// Requests that were not sent, because too many were under way.
    pub not_sent: u64,
}

impl Attack {
    /// Counts a request from `source` and its answer of so many bytes.
    pub fn count(&mut self, kind: Kind, source: Source, result: &str, bytes: usize) {
        *self.results.entry(kind).or_default().entry(result.to_owned()).or_default() += 1;
        self.bytes += bytes as u64;
        self.sources.insert(source);
    }

    /// Requests that were sent.
    pub fn sent(&self) -> u64 {
        self.results.values().flat_map(BTreeMap::values).sum()
    }

    /// Seats that they took.
    pub fn seats(&self) -> u64 {
        let taking = self.results.iter().filter(|(kind, _)| kind.takes_seats());
        taking.filter_map(|(_, results)| results.get(OK)).sum()
    }
}

/// The lobbies that a player sees listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub lobbies: usize,
    /// Those of them that no player has connected to.
    pub unused: usize,
}

/// A success among the results.
pub(crate) const OK: &str = "200";
/// A request without a response.
pub(crate) const NO_RESPONSE: &str = "no response";
/// A success whose response is not Muster's.
pub(crate) const UNREADABLE: &str = "200 unreadable";
/// Lobbies that are kept for hostile joins: of earlier ones many have ended.
const LOBBIES_MAX: usize = 64;

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
    /// Players who got a seat at the first attempt.
    pub seated_at_once: u64,
    /// Finds of players who had been refused.
    pub retries: u64,
    /// The lobbies of the players' last seats, oldest first.
    pub lobbies: VecDeque<LobbyId>,
    /// The answers to hostile requests.
    pub attack: Attack,
    /// What a player saw listed when the last hostile request was answered.
    pub listed: Option<Listed>,
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

    /// Notes the lobby of a player's seat.
    pub fn seated_in(&mut self, lobby_id: LobbyId) {
        self.lobbies.push_back(lobby_id);
        if self.lobbies.len() > LOBBIES_MAX {
            self.lobbies.pop_front();
        }
    }

    /// Players for whom a find was sent.
    pub fn players(&self) -> u64 {
        self.all(Call::Find) - self.retries
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

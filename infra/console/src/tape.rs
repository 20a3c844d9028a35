//! The requests to the local stack: the latest ones individually, and totals of all.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use shared::{
    base::{ambient::Timestamp, usage::Usage},
    models::ids::NamespaceId,
    wire::explanation::Explanation,
};
use tokio::sync::watch;

use crate::why::sentences;

/// Requests that are kept one by one.
const ENTRIES_MAX: usize = 500;
/// How long one column of the curve of finds is.
pub const COLUMN: Duration = Duration::from_secs(5);
/// Columns of ten minutes.
pub const COLUMNS: usize = 120;

/// A request and its answer.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// When the request came.
    pub at: Timestamp,
    /// How long the answer took.
    pub took: Duration,
    /// HTTP method.
    pub method: String,
    /// Path, without the query.
    pub path: String,
    /// The operation, unless there is none at that path.
    pub operation: Option<String>,
    /// The namespace of the token.
    pub namespace_id: Option<NamespaceId>,
    /// The identifier that the response carries.
    pub request_id: Option<String>,
    /// HTTP status.
    pub status: u16,
    /// The code of a refusal.
    pub code: Option<String>,
    /// The message of a refusal.
    pub message: Option<String>,
    /// The metadata of a refusal.
    pub metadata: Option<Value>,
    /// What helps against a refusal.
    pub hint: Option<String>,
    /// The warnings of the response, in one line.
    pub warnings: Option<String>,
    /// The values of the request.
    pub named: Named,
    /// The same of the response: the lobby of a seat.
    pub got: Named,
    /// Why a find came out so.
    pub explanation: Option<Explanation>,
    /// Its usage of DynamoDB.
    pub usage: Usage,
}

/// What a request or its response names; never a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Modes.
    pub game_modes: Vec<String>,
    /// Regions.
    pub regions: Vec<String>,
    /// A lobby.
    pub lobby_id: Option<String>,
    /// A game server.
    pub server_id: Option<String>,
    /// Tags, each as `name=value`.
    pub tags: Vec<String>,
}

impl Named {
    /// All of them.
    #[must_use]
    pub fn texts(self) -> Vec<String> {
        let Self { game_modes, regions, lobby_id, server_id, tags } = self;
        [game_modes, regions, Vec::from_iter(lobby_id), Vec::from_iter(server_id), tags].concat()
    }
}

/// A request as the page shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// Milliseconds until its answer.
    pub ms: f64,
    /// HTTP method.
    pub method: String,
    /// Path.
    pub path: String,
    /// The operation.
    pub operation: Option<String>,
    /// The identifier that the response carries.
    pub request_id: Option<String>,
    /// HTTP status.
    pub status: u16,
    /// The code of a refusal.
    pub code: Option<String>,
    /// The lobby of its response, else of the request.
    pub lobby_id: Option<String>,
    /// The game server.
    pub server_id: Option<String>,
    /// Values of the request.
    pub values: Vec<String>,
    /// The refusal, and why, in sentences.
    pub why: Vec<String>,
    /// The warnings of its response, in one line.
    pub warnings: Option<String>,
    /// The namespace of the token.
    pub namespace_id: Option<NamespaceId>,
}

/// An operation's usage of DynamoDB so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// The usage of all.
    pub usage: Usage,
}

/// Finds of one column of the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finds {
    /// Those that got a seat.
    pub seated: u32,
    /// Those that a rule or a lack of room refused.
    pub refused: u32,
    /// Those that failed.
    pub failed: u32,
}

/// The latest requests, and the sums over all.
#[derive(Debug, Default)]
struct Records {
    entries: VecDeque<Entry>,
    /// By the number of the column since the epoch, and the namespace.
    finds: BTreeMap<(u64, Option<NamespaceId>), Finds>,
    operations: BTreeMap<String, Totals>,
}

/// The requests of one host.
#[derive(Debug)]
pub struct Tape {
    records: Mutex<Records>,
    since: Timestamp,
    last: watch::Sender<u64>,
}

impl Tape {
    /// An empty tape, which begins at `since`.
    #[must_use]
    pub fn new(since: Timestamp) -> Self {
        Self { records: Mutex::default(), since, last: watch::Sender::new(0) }
    }

    /// Notes a request.
    pub fn note(&self, answered: Answered) {
        let mut records = self.records();
        if let Some(operation) = &answered.operation {
            let totals = records.operations.entry(operation.clone()).or_default();
            *totals = Totals { requests: totals.requests + 1, usage: totals.usage + answered.usage };
            if operation == "find-lobby" {
                let column = column(answered.at);
                let finds = records.finds.entry((column, answered.namespace_id.clone())).or_default();
                finds.count(answered.status);
                records.finds.retain(|(at, _), _| at + COLUMNS as u64 > column);
            }
        }
        let number = *self.last.borrow() + 1;
        records.entries.push_back(Entry::of(number, answered));
        if records.entries.len() > ENTRIES_MAX {
            records.entries.pop_front();
        }
        drop(records);
        self.last.send_replace(number);
    }

    /// The number of the last request, and of each that comes.
    #[must_use]
    pub fn last(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The requests after `number`, oldest first: those of a namespace, and those of none.
    #[must_use]
    pub fn after(&self, number: u64, namespace_id: &NamespaceId) -> Vec<Entry> {
        let records = self.records();
        let is_its = |entry: &&Entry| entry.namespace_id.as_ref().is_none_or(|id| id == namespace_id);
        records.entries.iter().filter(|entry| entry.number > number).filter(is_its).cloned().collect()
    }

    /// The request whose identifier begins so, if it is still kept.
    #[must_use]
    pub fn request(&self, beginning: &str) -> Option<Entry> {
        let is_it = |entry: &&Entry| entry.request_id.as_ref().is_some_and(|id| id.starts_with(beginning));
        self.records().entries.iter().rev().find(is_it).cloned()
    }

    /// The finds of a namespace in a column.
    #[must_use]
    pub fn finds(&self, column: u64, namespace_id: &NamespaceId) -> Finds {
        let key = (column, Some(namespace_id.clone()));
        self.records().finds.get(&key).copied().unwrap_or_default()
    }

    /// When the count began, and the usage of each operation.
    #[must_use]
    pub fn totals(&self) -> (Timestamp, BTreeMap<String, Totals>) {
        (self.since, self.records().operations.clone())
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of the column of the curve that `at` lies in.
#[must_use]
pub const fn column(at: Timestamp) -> u64 {
    at.secs() / COLUMN.as_secs()
}

impl Finds {
    fn count(&mut self, status: u16) {
        match status {
            200..300 => self.seated += 1,
            400..500 | 503 => self.refused += 1,
            _ => self.failed += 1,
        }
    }
}

impl Entry {
    fn of(number: u64, answered: Answered) -> Self {
        let Answered {
            at,
            took,
            method,
            path,
            operation,
            namespace_id,
            request_id,
            status,
            code,
            warnings,
            named,
            got,
            ..
        } = answered;
        let (lobby_id, server_id) = (
            got.lobby_id.or_else(|| named.lobby_id.clone()),
            got.server_id.or_else(|| named.server_id.clone()),
        );
        let mut why: Vec<String> = answered.message.into_iter().chain(answered.hint).collect();
        why.extend(answered.explanation.iter().flat_map(sentences));
        let values = named.texts();
        let ms = (took.as_secs_f64() * 10_000.0).round() / 10.0;
        Self {
            number,
            at,
            ms,
            method,
            path,
            operation,
            request_id,
            status,
            code,
            lobby_id,
            server_id,
            values,
            why,
            warnings,
            namespace_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(at: u64, namespace: &str, status: u16) -> Answered {
        Answered {
            at: Timestamp(at),
            operation: Some("find-lobby".to_owned()),
            namespace_id: Some(namespace.parse().unwrap()),
            status,
            usage: Usage { calls: 2, read_units: 0.5, write_units: 1.0 },
            ..Answered::default()
        }
    }

    #[test]
    fn finds_are_counted_by_outcome_and_namespace_in_columns_of_ten_minutes() {
        let tape = Tape::new(Timestamp(0));
        let namespace = "one".parse().unwrap();
        for status in [200, 200, 400, 503, 500] {
            tape.note(find(7_000, "one", status));
        }
        tape.note(find(7_000, "other", 200));
        assert_eq!(tape.finds(1, &namespace), Finds { seated: 2, refused: 2, failed: 1 });
        assert_eq!(tape.finds(2, &namespace), Finds::default());
        tape.note(find(7_000 + 600_000, "one", 200));
        assert_eq!(tape.finds(1, &namespace), Finds::default(), "it is ten minutes old");
    }

    #[test]
    fn a_request_is_found_by_the_beginning_of_its_identifier() {
        let tape = Tape::new(Timestamp(0));
        let lobby = |id: &str| Named { lobby_id: Some(id.to_owned()), ..Named::default() };
        for (id, got) in [("r-1", lobby("made")), ("r-2", Named::default())] {
            let (request_id, named) = (Some(id.to_owned()), lobby("asked"));
            tape.note(Answered { request_id, named, got, ..find(7_000, "one", 200) });
        }
        let lobby = |id: &str| tape.request(id).map(|entry| entry.lobby_id.unwrap());
        assert_eq!([lobby("r-1"), lobby("r-2")], [Some("made".to_owned()), Some("asked".to_owned())]);
        assert!(tape.request("r-3").is_none());
    }

    #[test]
    fn the_usage_of_an_operation_is_summed_beyond_the_requests_kept() {
        let tape = Tape::new(Timestamp(3));
        for _ in 0..ENTRIES_MAX + 1 {
            tape.note(find(7_000, "one", 200));
        }
        let (since, totals) = tape.totals();
        let find = totals["find-lobby"];
        assert_eq!((since, find.requests, find.usage.calls), (Timestamp(3), 501, 1_002));
        let kept = tape.after(0, &"one".parse().unwrap());
        assert_eq!((kept.len(), kept[0].number), (ENTRIES_MAX, 2));
        assert_eq!(tape.after(500, &"one".parse().unwrap()).len(), 1);
        assert!(tape.after(0, &"other".parse().unwrap()).is_empty());
    }
}

//! What is noted of one request on its way: for the client that asks why, for logs and for metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    base::usage::Usage,
    rules::criteria::Criteria,
    wire::explanation::{Creation, Explanation, Obstacles, Reason, Way},
};

/// The header that asks for an explanation.
pub const EXPLAIN_HEADER: &str = "muster-explain";

/// What is noted of one request on its way; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    explanation: Explanation,
    /// Whether whoever asks may be told.
    is_open: bool,
    /// How the seat came about.
    way: Option<Way>,
    /// Game servers with places that were met and whose heartbeats stopped.
    silent_servers: usize,
}

/// How a request for a seat came out, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// How the seat came about, if there is one.
    pub way: Option<Way>,
    /// Candidates that had a seat when they were looked at, and none when it was to be taken.
    pub races_lost: u64,
    /// Game servers with places that were met and whose heartbeats stopped; each is met once.
    pub silent_servers: u64,
}

impl Trace {
    /// Notes that the request is of somebody who may find.
    pub fn open(&self) {
        self.noted().is_open = true;
    }

    /// Notes what was asked for.
    pub fn resolved(&self, criteria: &Criteria) {
        self.noted().explanation.resolved = Some(criteria.into());
    }

    /// Notes candidates that were looked at, of which some lack a queried tag.
    pub fn considered(&self, count: usize, mismatched: usize) {
        let mut noted = self.noted();
        noted.explanation.considered += count;
        if mismatched > 0 {
            *noted.explanation.refused.entry(Reason::TagMismatch).or_default() += mismatched;
        }
    }

    /// Notes a candidate that was not taken.
    pub fn refused(&self, reason: Reason) {
        *self.noted().explanation.refused.entry(reason).or_default() += 1;
    }

    /// Notes why no game server has a place for a lobby.
    pub fn servers(&self, obstacles: Obstacles) {
        self.noted().explanation.servers = Some(obstacles);
    }

    /// Notes why a lobby is about to be created, or is not.
    pub fn creation(&self, creation: Creation) {
        self.noted().explanation.creation = Some(creation);
    }

    /// Notes how the seat came about.
    pub fn found(&self, way: Way) {
        let mut noted = self.noted();
        noted.way = Some(way);
        noted.explanation.created = matches!(way, Way::Created { .. });
        if way == Way::Joined {
            noted.explanation.creation = None;
        }
    }

    /// Notes game servers with places whose heartbeats stopped.
    pub fn silent_servers(&self, count: usize) {
        self.noted().silent_servers += count;
    }

    /// How the seat came about, if there is one, how many candidates others were quicker at, and how many
    /// servers were silent.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let noted = self.noted();
        let races_lost = noted.explanation.refused.get(&Reason::RaceLost).copied().unwrap_or(0);
        Outline { way: noted.way, races_lost: races_lost as u64, silent_servers: noted.silent_servers as u64 }
    }

    /// Notes that the answer was given before.
    pub fn replayed(&self) {
        self.noted().explanation.replayed = true;
    }

    /// Notes what the request cost, once it is over.
    pub fn cost(&self, usage: Usage) {
        let Usage { calls, read_units, write_units } = usage;
        let mut noted = self.noted();
        noted.explanation = Explanation { calls, read_units, write_units, ..noted.explanation.clone() };
    }

    /// The explanation, for those who may be told.
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        let noted = self.noted();
        noted.is_open.then(|| noted.explanation.clone())
    }

    /// Writes the explanation to the log, at the level `debug`.
    pub fn log(&self) {
        let Explanation { considered, refused, created, creation, replayed, .. } = &self.noted().explanation;
        tracing::debug!(considered, ?refused, created, ?creation, replayed, "how a find came out");
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

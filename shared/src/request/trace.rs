//! A record of one request's steps, for explanations, logs and metrics.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    base::usage::Usage,
    models::{
        ids::{RegionId, ServerKey},
        server::Server,
        shortage::Obstacles,
    },
    rules::criteria::Criteria,
    wire::explanation::{Creation, Explanation, FindOutcome, Reason, RegionOutcome},
};

/// The header that requests an explanation.
pub const EXPLAIN_HEADER: &str = "muster-explain";

/// A record of one request's steps, shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    explanation: Explanation,
    /// Whether the caller may have an explanation.
    is_open: bool,
    /// How the find got the seat.
    outcome: Option<FindOutcome>,
    /// Game servers with places that were read and whose heartbeats stopped.
    silent_servers: usize,
    /// Those without lobbies, which no later look sees.
    let_go: BTreeSet<ServerKey>,
}

/// The result of a request for a seat, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// How the find got its seat, if it has one.
    pub outcome: Option<FindOutcome>,
    /// Candidates that lost their free seats between the read and the write.
    pub races_lost: u64,
    /// Game servers with places that were read and whose heartbeats stopped; each counts once.
    pub silent_servers: u64,
}

impl Trace {
    /// Notes that the caller may find, and so may have an explanation.
    pub fn open(&self) {
        self.record().is_open = true;
    }

    /// Notes the request's criteria.
    pub fn resolved(&self, criteria: &Criteria) {
        let explanation = &mut self.record().explanation;
        explanation.resolved = Some(criteria.into());
        explanation.regions.clone_from(&criteria.regions);
    }

    /// Notes what became of a region, where the find has latencies.
    pub fn region(&self, region_id: &RegionId, outcome: RegionOutcome) {
        let regions = &mut self.record().explanation.regions;
        if let Some(region) = regions.iter_mut().find(|region| region.region_id == region_id.as_str()) {
            region.outcome = outcome;
        }
    }

    /// Notes in which region the seat is, where the find has latencies: nearer ones had none.
    pub fn chosen(&self, region_id: &RegionId) {
        self.region(region_id, RegionOutcome::Chosen);
        let regions = &mut self.record().explanation.regions;
        let latency = regions.iter().find(|region| region.outcome == RegionOutcome::Chosen);
        let latency = latency.and_then(|region| region.latency);
        for nearer in regions.iter_mut().filter(|region| region.latency < latency) {
            if nearer.outcome == RegionOutcome::NotNeeded {
                nearer.outcome = RegionOutcome::NothingJoinable;
            }
        }
    }

    /// Notes candidates that were looked at, of which some lack a queried tag.
    pub fn considered(&self, count: usize, mismatched: usize) {
        let mut record = self.record();
        record.explanation.considered += count;
        if mismatched > 0 {
            *record.explanation.refused.entry(Reason::TagMismatch).or_default() += mismatched;
        }
    }

    /// Notes a candidate that was not taken; `None` stands for a lobby that is not there.
    pub fn refused(&self, reason: Option<Reason>) {
        if let Some(reason) = reason {
            *self.record().explanation.refused.entry(reason).or_default() += 1;
        }
    }

    /// Notes why no game server has a place for a lobby.
    pub fn servers(&self, obstacles: Obstacles) {
        self.record().explanation.servers = Some(obstacles);
    }

    /// Why no game server has a place for a lobby, if that was noted.
    #[must_use]
    pub fn obstacles(&self) -> Option<Obstacles> {
        self.record().explanation.servers.clone()
    }

    /// Notes why a lobby is about to be created, or is not.
    pub fn creation(&self, creation: Creation) {
        self.record().explanation.creation = Some(creation);
    }

    /// Notes that the pool was so busy that a lobby was created beside `lobbies_in_use` others.
    pub fn created_beside(&self, lobbies_in_use: usize) {
        let explanation = &mut self.record().explanation;
        explanation.creation = Some(Creation::PoolBusy);
        explanation.lobbies_in_use = Some(lobbies_in_use);
    }

    /// Notes how the find got its seat.
    pub fn found(&self, outcome: FindOutcome) {
        let mut record = self.record();
        record.outcome = Some(outcome);
        record.explanation.created = matches!(outcome, FindOutcome::Created { .. });
        if outcome == FindOutcome::Joined {
            record.explanation.creation = None;
        }
    }

    /// Notes game servers with places whose heartbeats stopped.
    pub fn silent_servers(&self, silent: &[Server]) {
        let mut record = self.record();
        record.silent_servers += silent.len();
        let let_go = silent.iter().filter(|server| server.used == 0 && !server.is_deregistered());
        record.let_go.extend(let_go.map(|server| server.server.clone()));
    }

    /// The number of game servers without lobbies that this request found silent and let go, and that are not
    /// among `seen`.
    #[must_use]
    pub fn let_go_beside(&self, seen: &[Server]) -> usize {
        let seen: BTreeSet<_> = seen.iter().map(|server| &server.server).collect();
        self.record().let_go.iter().filter(|key| !seen.contains(key)).count()
    }

    /// How the find got its seat, how many races it lost, and how many servers were silent.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let record = self.record();
        let races_lost = record.explanation.refused.get(&Reason::RaceLost).copied().unwrap_or(0);
        Outline {
            outcome: record.outcome,
            races_lost: races_lost as u64,
            silent_servers: record.silent_servers as u64,
        }
    }

    /// Notes that the response is a repeated one.
    pub fn replayed(&self) {
        self.record().explanation.replayed = true;
    }

    /// Notes the cost of the request, once it is over.
    pub fn cost(&self, usage: Usage) {
        let Usage { calls, read_units, write_units } = usage;
        let mut record = self.record();
        record.explanation = Explanation { calls, read_units, write_units, ..record.explanation.clone() };
    }

    /// The explanation, if the caller may have it.
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        let record = self.record();
        record.is_open.then(|| record.explanation.clone())
    }

    /// Writes the explanation to the log, at the level `debug`.
    pub fn log(&self) {
        let Explanation { considered, refused, created, creation, replayed, .. } = &self.record().explanation;
        tracing::debug!(considered, ?refused, created, ?creation, replayed, "how a find came out");
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

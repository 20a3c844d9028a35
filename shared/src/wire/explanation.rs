//! The reasons for a find's result, for requests with `muster-explain: 1`: counts, without identifiers of
//! lobbies, so that private and closed lobbies stay unknown. The log has the same as a line at the level
//! `debug`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::models::{
    availability::Refusal,
    ids::{GameMode, RegionId},
    latency::Latency,
    pool::Tags,
    shortage::Obstacles,
};

/// Why a candidate was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its seats are held.
    Full,
    /// It has free seats, but fewer than the party has players.
    TooFull,
    /// It is closed, private or over.
    Closed,
    /// Its game server is silent.
    LeaseExpired,
    /// It lacks a queried tag.
    TagMismatch,
    /// It is of another version, or of another mode or region.
    OtherVersion,
    /// It lost its free seats between the read and the write.
    RaceLost,
    /// The request excludes it.
    Excluded,
}

impl Reason {
    /// Why a lobby with this refusal was not taken; `None` for one that is not there: it was no candidate.
    #[must_use]
    pub const fn of(refusal: Refusal) -> Option<Self> {
        Some(match refusal {
            Refusal::Missing => return None,
            Refusal::Full => Self::Full,
            Refusal::TooFull => Self::TooFull,
            Refusal::Ended | Refusal::Hidden => Self::Closed,
            Refusal::LeaseLapsed => Self::LeaseExpired,
            Refusal::OtherPool => Self::OtherVersion,
            Refusal::TagMissing => Self::TagMismatch,
            Refusal::Excluded => Self::Excluded,
        })
    }
}

/// Why a find created a lobby, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Creation {
    /// The find saw no lobby that it could enter.
    NothingJoinable,
    /// The pool has so many finds that this one did not look for lobbies of others first.
    PoolBusy,
    /// The request prevents it.
    Prevented,
}

/// A mode in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The mode.
    pub game_mode: GameMode,
    /// The region.
    pub region_id: RegionId,
}

/// What became of a region in a find with `latencies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionOutcome {
    /// The seat is there.
    Chosen,
    /// The find had no need of it.
    NotNeeded,
    /// Without a lobby that the find could enter.
    NothingJoinable,
    /// The same, and no lobby could be created there.
    NoPlace,
    /// Four regions are nearer.
    TooFar,
    /// The client cannot reach it.
    Unreachable,
    /// The request has no latency of it.
    NotMeasured,
    /// It is not among the request's `regions`.
    NotRequested,
    /// No requested mode runs there.
    NotEnabled,
    /// The game has no such region.
    NotFound,
}

/// A region in a find with `latencies`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedRegion {
    /// Its identifier, at most the first 64 characters.
    pub region_id: String,
    /// The latency in the request, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What became of it.
    pub outcome: RegionOutcome,
}

/// The request's criteria, after every rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The modes and regions that it searches.
    pub searched: Vec<Place>,
    /// The mode and region in which it creates.
    pub creates: Place,
    /// Tags that a lobby must have.
    pub tags: Tags,
    /// Seats of a lobby that would be created.
    pub max_players: u32,
}

/// An explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The criteria; absent when a rule refused the request, and in mock responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
    /// Each region, nearest first; present in finds with `latencies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<ExplainedRegion>,
    /// Candidates looked at, each time that the find looks at them.
    pub considered: usize,
    /// Candidates that were not taken, by reason.
    pub refused: BTreeMap<Reason, usize>,
    /// Whether a lobby was created for the request.
    pub created: bool,
    /// Why one was, or would have been; absent when the find took a seat in an existing one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<Creation>,
    /// Lobbies of the pool that the instance used or read within the last second; present where the pool was
    /// busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobbies_in_use: Option<usize>,
    /// The game servers of the region for a new lobby, by the reason why they got none; present when none had
    /// a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Obstacles>,
    /// Whether the response is that of an earlier request with the same `Idempotency-Key`.
    pub replayed: bool,
    /// Calls of DynamoDB.
    pub calls: u64,
    /// Read units.
    pub read_units: f64,
    /// Write units.
    pub write_units: f64,
}

/// How a find got its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindOutcome {
    /// In an existing lobby.
    Joined,
    /// In a lobby created for it.
    Created {
        /// Whether another lobby was joinable by then, which is counted (I9).
        is_race_create: bool,
    },
}

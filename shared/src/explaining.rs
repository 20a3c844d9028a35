//! Why a find came out as it did, for whoever asks with `muster-explain: 1`: counts, never an identifier of a lobby, so that
//! private and closed lobbies stay unknown. The same is a line in the log at the level `debug`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    ambient::Timestamp,
    ids::{GameMode, RegionId},
    lobby::Refusal,
    matchmaking::Way,
    models::{Pool, Tags},
    rules::criteria::Criteria,
    store::{meter::Usage, servers::Server},
};

/// The header that asks for an explanation.
pub const EXPLAIN_HEADER: &str = "muster-explain";

/// Why a candidate was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its seats are held.
    Full,
    /// It is closed, private or over.
    Closed,
    /// Its game server is silent.
    LeaseExpired,
    /// It lacks a queried tag.
    TagMismatch,
    /// It is of another version, or of another mode or region.
    OtherVersion,
    /// It had a seat when it was looked at, and none when it was to be taken.
    RaceLost,
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            Refusal::Missing | Refusal::Ended | Refusal::Hidden => Self::Closed,
            Refusal::LeaseLapsed => Self::LeaseExpired,
            Refusal::OtherPool => Self::OtherVersion,
            Refusal::TagMissing => Self::TagMismatch,
        }
    }
}

/// Why a find created a lobby, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Creation {
    /// None that it saw could be taken.
    NothingJoinable,
    /// So many finds come that it did not look for others' lobbies first.
    PoolBusy,
    /// The request prevents it.
    Prevented,
}

/// Why a game server gets no lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// It deregistered, and still runs lobbies.
    Draining,
    /// Its heartbeats stopped.
    Silent,
    /// It started anew, and lobbies of an earlier start are still to be ended.
    Clearing,
    /// It does not run the mode, or has ports that only a later release knows.
    Unfit,
    /// It runs as many lobbies as it can.
    Full,
}

impl Obstacle {
    /// Why `server` gets no lobby of `mode` at `now`; nothing when it has a place for one.
    #[must_use]
    pub fn of(server: &Server, mode: &GameMode, now: Timestamp) -> Option<Self> {
        if server.fits(mode, now) {
            None
        } else if server.is_deregistered() {
            Some(Self::Draining)
        } else if server.lease_until <= now {
            Some(Self::Silent)
        } else if server.is_clearing {
            Some(Self::Clearing)
        } else if server.used >= server.capacity {
            Some(Self::Full)
        } else {
            Some(Self::Unfit)
        }
    }
}

/// Game servers by why they get no lobby.
pub type Obstacles = BTreeMap<Obstacle, usize>;

/// How many of `servers` get no lobby of `mode` at `now`, and why.
#[must_use]
pub fn obstacles<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    mode: &GameMode,
    now: Timestamp,
) -> Obstacles {
    let mut obstacles = Obstacles::new();
    for obstacle in servers.into_iter().filter_map(|server| Obstacle::of(server, mode, now)) {
        *obstacles.entry(obstacle).or_default() += 1;
    }
    obstacles
}

/// A mode in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The mode.
    pub game_mode: GameMode,
    /// The region.
    pub region_id: RegionId,
}

/// What was asked for, after every rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Where lobbies are looked for.
    pub searched: Vec<Place>,
    /// Where one would be created.
    pub creates: Place,
    /// Tags that a lobby must have.
    pub tags: Tags,
    /// Seats of a lobby that would be created.
    pub max_players: u32,
}

impl From<&Criteria> for Resolved {
    fn from(criteria: &Criteria) -> Self {
        let Criteria { pools, tags, new_lobby, .. } = criteria;
        let place =
            |pool: &Pool| Place { game_mode: pool.game_mode.clone(), region_id: pool.region_id.clone() };
        Self {
            searched: pools.iter().map(|searched| place(&searched.pool)).collect(),
            creates: place(&new_lobby.pool),
            tags: tags.clone(),
            max_players: new_lobby.max_players,
        }
    }
}

/// An explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What was asked for; absent when a rule refused it, and in a developer's made-up answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
    /// Candidates looked at; the same lobby counts each time that it is.
    pub considered: usize,
    /// Those of them that were not taken, by reason.
    pub refused: BTreeMap<Reason, usize>,
    /// Whether a lobby was created for the request.
    pub created: bool,
    /// Why one was, or would have been; absent when one that was there was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<Creation>,
    /// The game servers of the region in which a lobby was to be created, by why they got none; present when none had a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Obstacles>,
    /// Whether the answer is that of an earlier request of the same `Idempotency-Key`.
    pub replayed: bool,
    /// Calls of DynamoDB.
    pub calls: u64,
    /// Read units.
    pub read_units: f64,
    /// Write units.
    pub write_units: f64,
}

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

    /// How the seat came about, if there is one, how many candidates others were quicker at, and how many servers were silent.
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

//! Game servers as they are stored, and the places on them.

use std::{collections::BTreeSet, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    base::{ambient::Timestamp, record::known},
    models::{
        ids::{
            BuildId, GameId, GameMode, InvalidIdentifier, NamespaceId, RegionId, ServerKey, StartId,
            StartMark, VersionId, WriteId,
        },
        launch::{GRACE, Launch, LaunchStage, PROMISED_FOR},
        lobby::Lobby,
        pool::Pool,
        ports::Ports,
        token::Owner,
    },
};

/// How long a server without a free place is out of sight. The server may fall silent meanwhile, and would
/// then hold its lobbies permanently.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);
/// The time over which servers that went out of sight together come back, in seconds.
const LOOK_AGAIN_SPREAD: u64 = 1_800;

/// The servers that can run the same lobbies: those of a namespace's region with the same build, or without
/// one. As text, these joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlacementPool {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The region.
    pub region_id: RegionId,
    /// The build that they run, where a version has its servers started.
    pub build_id: Option<BuildId>,
}

impl Pool {
    /// The placement pool of its lobbies, whose version has its servers started from the build, if any.
    #[must_use]
    pub fn placement(&self, build_id: Option<BuildId>) -> PlacementPool {
        let Self { namespace_id, region_id, .. } = self.clone();
        PlacementPool { namespace_id, region_id, build_id }
    }
}

impl PlacementPool {
    /// Its part beyond the namespace: region and build.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.build_id {
            Some(build_id) => format!("{}/{build_id}", self.region_id),
            None => self.region_id.to_string(),
        }
    }
}

impl fmt::Display for PlacementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace_id, self.place())
    }
}

impl TryFrom<String> for PlacementPool {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (namespace, place) = text.split_once('/').ok_or(InvalidIdentifier)?;
        let (region, build) =
            place.split_once('/').map_or((place, None), |(region, build)| (region, Some(build)));
        let build_id = build.map(str::parse).transpose()?;
        Ok(Self { namespace_id: namespace.parse()?, region_id: region.parse()?, build_id })
    }
}

/// A game server: where lobbies run. Attribute names are those of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its namespace and identifier.
    pub server: ServerKey,
    /// The start that registered last; absent when it registered with an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_id: Option<StartId>,
    /// The game of its namespace; absent when it registered with an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game_id: Option<GameId>,
    /// The token that registered it or renewed it last; absent when an earlier release did.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// When that start first registered.
    #[serde(default)]
    pub started_at: Timestamp,
    /// The starts before it, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_starts: Vec<StartMark>,
    /// Whether lobbies of earlier starts have still to end: until then it gets no others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_clearing: bool,
    /// Where it is.
    pub region_id: RegionId,
    /// The build that it runs, where a version has its servers started; it gets lobbies of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
    /// Its request, if Muster had it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Where it stands, if Muster had it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<LaunchStage>,
    /// Since which heartbeat it has had no lobbies, if Muster had it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Timestamp>,
    /// What its starter calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// When its starter ended its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Its placement pool, the key of the index; absent once it deregistered and its record expires, so that
    /// it is in no index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_pool: Option<PlacementPool>,
    /// From when a look for places sees it: `ranked_at` while it has one, later than [`Timestamp::NEVER`]
    /// once it was let go in silence, else an hour or so after it was seen, filled or deregistered.
    pub free_from: Timestamp,
    /// The value of `free_from` when a lobby ends: its first registration; once deregistered, the time from
    /// which a look for places lets its record go if it runs no lobby.
    pub ranked_at: Timestamp,
    /// Lobbies that it can run at the same time; 0 once deregistered.
    pub capacity: u32,
    /// Lobbies that it runs.
    pub used: u32,
    /// Lobbies that it may run of the namespace's cap, see [`crate::store::allotment`]; at least `used`.
    #[serde(default)]
    pub allotted: u32,
    /// The cap that this was last checked against.
    #[serde(default)]
    pub cap_checked: u32,
    /// When its lease expires; [`Timestamp::NEVER`] without lease.
    pub lease_until: Timestamp,
    /// When it last registered or sent a heartbeat.
    #[serde(default)]
    pub beat_at: Timestamp,
    /// By how much a heartbeat extends the lease, in milliseconds; absent without lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Modes that it can run; every one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game_modes: Option<BTreeSet<GameMode>>,
    /// Whether its lobbies are ready at once.
    pub auto_ready: bool,
    /// Its ports.
    pub ports: Ports,
    /// Its last registration: an instance that knows an earlier one may know other ports.
    pub registration: WriteId,
}

impl Server {
    /// A server that runs no lobbies, and is ready for them from `now` on without a lease.
    #[must_use]
    pub fn standing(
        (server, registration): (ServerKey, WriteId),
        (game_id, pool): (GameId, PlacementPool),
        (capacity, ports): (u32, Ports),
        now: Timestamp,
    ) -> Self {
        Self {
            server,
            start_id: None,
            game_id: Some(game_id),
            owner: None,
            started_at: now,
            former_starts: Vec::new(),
            is_clearing: false,
            region_id: pool.region_id.clone(),
            build_id: pool.build_id.clone(),
            launch: None,
            stage: None,
            idle_since: None,
            handle: None,
            ended_at: None,
            failure: None,
            placement_pool: Some(pool),
            free_from: now,
            ranked_at: now,
            capacity,
            used: 0,
            allotted: 0,
            cap_checked: 0,
            lease_until: Timestamp::NEVER,
            beat_at: now,
            lease_ms: None,
            game_modes: None,
            auto_ready: true,
            ports,
            registration,
        }
    }

    /// A server that is requested at `now`, without its lobbies: it waits for its registration, and gets
    /// lobbies already.
    #[must_use]
    pub fn requested(
        (server, start_id, registration): (ServerKey, StartId, WriteId),
        of: (GameId, PlacementPool),
        launch: Launch,
        capacity: u32,
    ) -> Self {
        let standing =
            Self::standing((server, registration), of, (capacity, Ports::default()), launch.requested_at);
        Self {
            start_id: Some(start_id),
            lease_until: launch.deadline + GRACE,
            launch: Some(launch),
            stage: Some(LaunchStage::Requested),
            auto_ready: false,
            ..standing
        }
    }

    /// Its placement pool.
    #[must_use]
    pub fn pool(&self) -> PlacementPool {
        PlacementPool {
            namespace_id: self.server.namespace_id.clone(),
            region_id: self.region_id.clone(),
            build_id: self.build_id.clone(),
        }
    }

    /// Whether it was requested, and has not registered.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.stage == Some(LaunchStage::Requested)
    }

    /// Whether finds that drew its places are on their way: it was requested a moment ago.
    #[must_use]
    pub fn is_promised(&self, now: Timestamp) -> bool {
        let request = self.launch.as_ref().filter(|_| self.is_requested());
        request.is_some_and(|launch| now.since(launch.requested_at) < PROMISED_FOR)
    }

    /// Whether Muster had it started, and it is to end for want of lobbies.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stage == Some(LaunchStage::Stopping)
    }

    /// Whether Muster had it started, and it is to end or has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage.is_some_and(LaunchStage::is_over)
    }

    /// Whether it counts among the servers that its version may have started: from its request until it is
    /// over.
    #[must_use]
    pub fn counts_as_started(&self) -> bool {
        self.launch.is_some() && !self.is_over()
    }

    /// Whether Muster had it started, or has it started now, and its process has not ended for sure.
    #[must_use]
    pub fn stands_launched(&self) -> bool {
        self.launch.is_some() && self.ended_at.is_none()
    }

    /// Whether it stands so for a version.
    #[must_use]
    pub fn is_launched_for(&self, version_id: &VersionId) -> bool {
        self.stands_launched() && self.launch.as_ref().is_some_and(|launch| launch.version_id == *version_id)
    }

    /// The end of the wait for it at `now`, if it was requested and has not registered.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.launch.as_ref().filter(|_| self.is_requested()).map(|launch| launch.deadline)
    }

    /// Whether a lobby of `mode` may be placed here at `now`.
    #[must_use]
    pub fn fits(&self, mode: &GameMode, now: Timestamp) -> bool {
        self.used < self.capacity && self.serves(mode, now)
    }

    /// The same, without regard to its free places.
    #[must_use]
    pub fn serves(&self, mode: &GameMode, now: Timestamp) -> bool {
        self.lease_until > now
            && !self.is_deregistered()
            && !self.is_clearing
            && self.ports.are_known()
            && self.game_modes.as_ref().is_none_or(|modes| modes.contains(mode))
    }

    /// Its start, as stored in its lobbies.
    #[must_use]
    pub fn start(&self) -> Option<StartMark> {
        self.start_id.as_ref().map(StartId::mark)
    }

    /// Whether its current start runs `lobby`.
    #[must_use]
    pub fn runs(&self, lobby: &Lobby) -> bool {
        lobby.server.as_ref() == Some(&self.server) && (lobby.start.is_none() || lobby.start == self.start())
    }

    /// Whether it deregistered, and has not registered again.
    #[must_use]
    pub fn is_deregistered(&self) -> bool {
        self.capacity == 0
    }

    /// Whether it deregistered and no longer runs a lobby.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_deregistered() && self.used == 0
    }

    /// Whether it was let go in silence, and has not been heard since.
    #[must_use]
    pub fn was_let_go_in_silence(&self) -> bool {
        self.free_from > Timestamp::NEVER
    }

    /// When a look for places sees it again, if it has none at `now`.
    #[must_use]
    pub fn look_again(&self, now: Timestamp) -> Timestamp {
        look_again(&self.server, now)
    }

    /// Whether it has been silent for so long at `now` that its lobbies may end.
    #[must_use]
    pub fn is_long_silent(&self, now: Timestamp) -> bool {
        self.lease_until + SILENT_MAX <= now
    }

    /// Whether at least half of its lease is left. A lobby created now copies the lease as it was read, and
    /// must not get one that is about to expire.
    #[must_use]
    pub fn has_fresh_lease(&self, now: Timestamp) -> bool {
        let left = self.lease_until.since(now).as_millis();
        self.lease_ms.is_none_or(|lease_ms| left * 2 >= u128::from(lease_ms))
    }
}

/// The place in the index of a server that was let go in silence, by the end of its lease: behind everything
/// that finds and lists of living servers read.
#[must_use]
pub const fn let_go_in_silence(lease_until: Timestamp) -> Timestamp {
    Timestamp(Timestamp::NEVER.0.saturating_add(lease_until.0))
}

/// When a look for places sees a server again that has none at `now`.
#[must_use]
pub fn look_again(key: &ServerKey, now: Timestamp) -> Timestamp {
    let text = key.to_string();
    let sum = text.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    now + LOOK_AGAIN + Duration::from_secs(sum % LOOK_AGAIN_SPREAD)
}

/// How long a server may be silent before its lobbies end, even if no find needs their capacity.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(3_600);

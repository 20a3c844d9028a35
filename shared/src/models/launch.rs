//! Game servers on demand (decision 76): what a version says of them, and how a server that Muster requested
//! comes to be and ends.

use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    base::ambient::Timestamp,
    models::ids::{BuildId, LobbyId, RegionId, VersionId},
};

/// How long after its deadline a requested server's places and lobbies stay, so that the last registration
/// in time still finds them.
pub const GRACE: Duration = Duration::from_secs(30);
/// The start of a server that is expected where none was seen yet.
pub const START_EXPECTED: Duration = Duration::from_secs(5);

/// How long the places of a requested server that has not registered are those of the finds that drew them
/// (decision 76). Its nursery lives longer: it ends two seconds after its last draw, which a request follows
/// within half a second.
pub const PROMISED_FOR: Duration = Duration::from_millis(1_500);

/// The game servers of a version, where Muster has them started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenServers")]
pub struct ServersConfig {
    /// What to start: any JSON, which the starter hands on. Servers of equal builds are interchangeable.
    pub build: Value,
    /// Lobbies that one server runs at the same time.
    pub capacity: u32,
    /// The most servers of a region that are requested or run at one time.
    pub server_count_max: u32,
    /// How long a server may take from its request to its registration, in seconds.
    pub start_seconds: u32,
    /// How long a server stays without lobbies, in seconds.
    pub idle_seconds: u32,
}

/// The same as written: what is absent or null has its default.
#[derive(Deserialize)]
struct WrittenServers {
    build: Value,
    capacity: Option<u32>,
    server_count_max: Option<u32>,
    start_seconds: Option<u32>,
    idle_seconds: Option<u32>,
}

impl From<WrittenServers> for ServersConfig {
    fn from(written: WrittenServers) -> Self {
        let WrittenServers { build, capacity, server_count_max, start_seconds, idle_seconds } = written;
        Self {
            build,
            capacity: capacity.unwrap_or(1),
            server_count_max: server_count_max.unwrap_or(20),
            start_seconds: start_seconds.unwrap_or(120),
            idle_seconds: idle_seconds.unwrap_or(60),
        }
    }
}

impl ServersConfig {
    /// The identifier of its build.
    #[must_use]
    pub fn build_id(&self) -> BuildId {
        build_id(&self.build)
    }
}

/// The identifier of a build: the same for equal JSON, whatever the order of fields.
#[must_use]
pub fn build_id(build: &Value) -> BuildId {
    BuildId::of_digest(digest(&SHA256, sorted(build).to_string().as_bytes()).as_ref())
}

/// The value with the fields of each object in order, however this build of `serde_json` keeps them.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Where a requested server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LaunchStage {
    /// It is to be started, and has not registered.
    Requested,
    /// It registered.
    Running,
    /// It had no lobbies for its idle time and is to end.
    Stopping,
    /// It was refused, or did not register in time.
    Failed,
    /// It is out of service, and its process is to be ended.
    Gone,
    /// One that only a later release knows.
    #[serde(other)]
    Unknown,
}

impl LaunchStage {
    /// Its name in records and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether its process is to be ended, if it has one.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Stopping | Self::Failed | Self::Gone)
    }
}

/// The request of a game server. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The version whose `servers` say what to start.
    pub version_id: VersionId,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// When it will probably register, by earlier starts.
    #[serde(default)]
    pub expected_at: Option<Timestamp>,
    /// Until when it has to register.
    pub deadline: Timestamp,
    /// How long it stays without lobbies, in seconds.
    pub idle_secs: u32,
}

/// The wait for a requested server, as a lobby on it has it until it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchWait {
    /// When the server was requested.
    pub requested_at: Timestamp,
    /// When it will probably register, by earlier starts.
    pub expected_at: Timestamp,
    /// Until when it has to register.
    pub deadline: Timestamp,
}

/// Why a find has no seat yet: its lobby waits for a game server that is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starting {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// The wait for its server.
    pub wait: LaunchWait,
    /// When the client should ask again.
    pub retry_after: Duration,
}

/// Why no game server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// The region.
    pub region_id: RegionId,
    /// The reason, in few words and without secrets.
    pub reason: String,
    /// When the client should ask again.
    pub retry_after: Duration,
}

/// What new lobbies of a version need where no server has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRules {
    /// Lobbies that one server runs.
    pub capacity: u32,
    /// The most servers of the placement pool.
    pub server_count_max: u32,
    /// How long a server may take to register.
    pub start: Duration,
    /// How long a server stays without lobbies, in seconds.
    pub idle_secs: u32,
}

impl From<&ServersConfig> for LaunchRules {
    fn from(servers: &ServersConfig) -> Self {
        Self {
            capacity: servers.capacity,
            server_count_max: servers.server_count_max,
            start: Duration::from_secs(servers.start_seconds.into()),
            idle_secs: servers.idle_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_builds_have_one_identifier_whatever_the_order_of_their_fields() {
        let one: Value = serde_json::from_str(r#"{"image": "a:1", "args": [{"x": 1, "y": 2}]}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"args": [{"y": 2, "x": 1}], "image": "a:1"}"#).unwrap();
        assert_eq!(build_id(&one), build_id(&other));
        assert_ne!(build_id(&one), build_id(&json!({ "image": "a:2", "args": [{ "x": 1, "y": 2 }] })));
        assert_ne!(build_id(&json!("1")), build_id(&json!(1)));
    }

    #[test]
    fn a_block_needs_nothing_but_a_build() {
        let servers: ServersConfig = serde_json::from_value(json!({ "build": "game:7" })).unwrap();
        let ServersConfig { capacity, server_count_max, start_seconds, idle_seconds, .. } = servers;
        assert_eq!((capacity, server_count_max, start_seconds, idle_seconds), (1, 20, 120, 60));
    }

    #[test]
    fn a_stage_of_a_later_release_is_read() {
        let stage = |text: &str| serde_json::from_str::<LaunchStage>(text).unwrap();
        assert_eq!(stage(r#""requested""#), LaunchStage::Requested);
        assert_eq!(stage(r#""hibernating""#), LaunchStage::Unknown);
    }
}

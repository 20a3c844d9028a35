//! What game servers and lobby servers say and are told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    base::{
        ambient::{Timestamp, time},
        json::objects_by_name,
    },
    models::{
        ids::{GameMode, LobbyId, RegionId, ServerId, StartId},
        pool::Tags,
    },
    wire::ports::PortSpec,
};

/// Request of lobbies.closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetLobbyClosedRequest {
    /// Whether the lobby is to be closed to finds.
    pub is_closed: bool,
}

/// Request of players.connected and players.disconnected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlayerRequest {
    /// What the player's client showed.
    pub player_token: String,
}

/// Request of servers.register.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisterServerRequest {
    /// The server's identifier; absent means a new one.
    #[serde(default)]
    pub server_id: Option<ServerId>,
    /// The process's name for its start, which tells a new start from a repetition.
    #[serde(default)]
    pub start_id: Option<StartId>,
    /// Where it is.
    pub region_id: String,
    /// Modes that it can run; absent means every one.
    #[serde(default)]
    pub game_modes: Option<Vec<String>>,
    /// Lobbies that it can run at once.
    #[serde(default)]
    pub capacity: Option<u32>,
    /// Its ports by label.
    #[serde(deserialize_with = "objects_by_name")]
    pub ports: BTreeMap<String, PortSpec>,
    /// How long it is taken to live after each heartbeat; a minute when absent, for ever when 0.
    #[serde(default)]
    pub lease_seconds: Option<u32>,
    /// Whether its lobbies are ready at once; true when absent.
    #[serde(default)]
    pub auto_ready: Option<bool>,
}

/// Response of servers.register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterServerResponse {
    /// The server's identifier.
    pub server_id: ServerId,
    /// Until when it is taken to live; `null` without lease.
    pub lease_expires_at: Option<String>,
}

/// Request of servers.heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HeartbeatRequest {
    /// The server.
    pub server_id: ServerId,
    /// The start that it registered with; any when absent.
    #[serde(default)]
    pub start_id: Option<StartId>,
    /// Where the last page of lobbies ended.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Response of servers.heartbeat.
#[derive(Clone, Debug, Serialize)]
pub struct HeartbeatResponse {
    /// Until when the server is taken to live; absent without lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<String>,
    /// Present and true when the server deregistered: it gets no lobby any more, and is unknown once these
    /// have ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Where this page ends, when there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The server's lobbies, oldest first.
    pub lobbies: Vec<ServerLobby>,
}

/// A lobby as its game server learns of it.
#[derive(Clone, Debug, Serialize)]
pub struct ServerLobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// With which its lobby server speaks for it.
    pub lobby_token: String,
    /// Its mode.
    pub game_mode: GameMode,
    /// Its region.
    pub region_id: RegionId,
    /// Its tags.
    pub tags: Tags,
    /// Seats that find fills it up to.
    pub max_players: u32,
    /// What its creator configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobby_config: Option<Box<RawValue>>,
    /// When it was made.
    pub created_at: String,
}

/// Request of servers.end-lobby.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EndLobbyRequest {
    /// The lobby; any text, of which only identifiers name one.
    pub lobby_id: String,
}

/// Request of servers.deregister.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DeregisterServerRequest {
    /// The server.
    pub server_id: ServerId,
    /// The start that it registered with; any when absent.
    #[serde(default)]
    pub start_id: Option<StartId>,
    /// Whether its lobbies end at once instead of when they are empty.
    #[serde(default)]
    pub end_lobbies: Option<bool>,
}

/// The end of a lease as the wire has it; nothing without lease.
#[must_use]
pub fn lease_end(until: Timestamp) -> Option<String> {
    (until < Timestamp::NEVER).then(|| time(until))
}

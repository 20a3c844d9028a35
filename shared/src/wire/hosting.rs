//! The requests of game servers and lobby servers, and their responses.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    base::{
        ambient::{Timestamp, time},
        json::objects_by_name,
    },
    models::{
        errors::{Error, bad_body},
        ids::{GameMode, LobbyId, RegionId, ServerId, StartId},
        pool::Tags,
        publicity::Publicity,
        seats::PlayerDetails,
        version::KEEP_SECONDS_MAX,
    },
    wire::{ports::PortSpec, values::null_as_default},
};

/// Request of lobbies.closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetLobbyClosedRequest {
    /// Whether to close the lobby to finds.
    pub is_closed: bool,
}

/// Request of lobbies.publicity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetLobbyPublicityRequest {
    /// Who is to find the lobby.
    pub publicity: Publicity,
}

/// Request of players.connected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConnectPlayerRequest {
    /// The player token from the player's client.
    pub player_token: String,
    /// Whether the response describes the player.
    #[serde(default, deserialize_with = "null_as_default")]
    pub details: bool,
}

/// Response of players.connected: the player, if requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectPlayerResponse {
    /// The player.
    #[serde(flatten)]
    pub player: Option<PlayerDetails>,
}

/// Request of players.disconnected: of one player, or of every one of the lobby.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DisconnectPlayerRequest {
    /// The player token from the player's client.
    pub player_token: Option<String>,
    /// Whether it is of every connected player of the lobby.
    #[serde(default, deserialize_with = "null_as_default")]
    pub everyone: bool,
    /// For how long the seat is kept for its player, 0 to 600 seconds; the mode's when absent.
    pub keep_seconds: Option<u32>,
}

/// Who disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disconnected {
    /// The player with this token.
    Player(String),
    /// Every connected player of the lobby.
    Everyone,
}

impl DisconnectPlayerRequest {
    /// Who disconnected, and for how long the seat is kept, if the request says so.
    ///
    /// # Errors
    /// [`Error::BadBody`].
    pub fn read(self) -> Result<(Disconnected, Option<Duration>), Error> {
        let keep = self.keep_seconds.map(|secs| Duration::from_secs(secs.into()));
        if self.keep_seconds.is_some_and(|secs| secs > KEEP_SECONDS_MAX) {
            return Err(bad_body("keep_seconds", "at most 600 seconds are possible"));
        }
        match (self.player_token, self.everyone) {
            (Some(token), false) => Ok((Disconnected::Player(token), keep)),
            (None, true) => Ok((Disconnected::Everyone, keep)),
            (None, false) => Err(bad_body(".", "missing field `player_token`")),
            (Some(_), true) => Err(bad_body("everyone", "one player has a `player_token`: send either")),
        }
    }
}

/// Request of players.leave and players.rejoin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlayerRequest {
    /// The player token from the player's client.
    pub player_token: String,
}

/// The longest time for which a removed player is kept out of a lobby, and that of a request that names none:
/// as long as a player may stay connected.
const EXCLUDE_SECONDS_MAX: u32 = 8 * 3_600;

/// Request of players.remove.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RemovePlayerRequest {
    /// The player token from the player's client.
    pub player_token: String,
    /// For how long the player is seated in this lobby no more, 0 to 28,800 seconds; 28,800 when absent.
    pub exclude_seconds: Option<u32>,
}

impl RemovePlayerRequest {
    /// For how long the player is kept out.
    ///
    /// # Errors
    /// [`Error::BadBody`].
    pub fn excluded_for(&self) -> Result<Duration, Error> {
        let secs = self.exclude_seconds.unwrap_or(EXCLUDE_SECONDS_MAX);
        if secs > EXCLUDE_SECONDS_MAX {
            return Err(bad_body("exclude_seconds", "at most 28800 seconds, 8 hours, are possible"));
        }
        Ok(Duration::from_secs(secs.into()))
    }
}

/// Request of servers.register.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisterServerRequest {
    /// The server's identifier; absent means a new one.
    pub server_id: Option<ServerId>,
    /// The process's name for its start, which distinguishes a new start from a retry.
    pub start_id: Option<StartId>,
    /// Its region.
    pub region_id: String,
    /// Modes that it can run; absent means every one.
    pub game_modes: Option<Vec<String>>,
    /// Lobbies that it can run at the same time.
    pub capacity: Option<u32>,
    /// Its ports by label.
    #[serde(deserialize_with = "objects_by_name")]
    pub ports: BTreeMap<String, PortSpec>,
    /// Its lease after each heartbeat; a minute when absent, permanent when 0.
    pub lease_seconds: Option<u32>,
    /// Whether its lobbies are ready at once; true when absent.
    pub auto_ready: Option<bool>,
    /// The build that it runs, if it is to run lobbies of versions whose servers Muster has started.
    pub build: Option<serde_json::Value>,
}

/// Response of servers.register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterServerResponse {
    /// The server's identifier.
    pub server_id: ServerId,
    /// When its lease expires; `null` without lease.
    pub lease_expires_at: Option<String>,
}

/// Request of servers.heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HeartbeatRequest {
    /// The server.
    pub server_id: ServerId,
    /// The start that it registered with; any when absent.
    pub start_id: Option<StartId>,
    /// Where the last page of lobbies ended.
    pub cursor: Option<String>,
}

/// Response of servers.heartbeat.
#[derive(Clone, Debug, Serialize)]
pub struct HeartbeatResponse {
    /// When the server's lease expires; absent without lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<String>,
    /// Present and true when the server deregistered: it gets no more lobbies, and is unknown once these have
    /// ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Present and true when Muster had the server started and it is to end: it had no lobbies for its idle
    /// time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    /// Where this page ends, when there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The server's lobbies, oldest first.
    pub lobbies: Vec<ServerLobby>,
}

/// A lobby in the response to its game server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerLobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// The token for its lobby server.
    pub lobby_token: String,
    /// Its mode.
    pub game_mode: GameMode,
    /// Its region.
    pub region_id: RegionId,
    /// Its tags.
    pub tags: Tags,
    /// Its capacity for finds.
    pub max_players: u32,
    /// Its held seats.
    pub seats: HeldSeats,
    /// Its creator's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobby_config: Option<Box<RawValue>>,
    /// When it was created.
    pub created_at: String,
}

/// The seats of a lobby that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldSeats {
    /// By players on their way.
    pub reserved: usize,
    /// By players who connected.
    pub connected: usize,
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
    pub start_id: Option<StartId>,
    /// Whether its lobbies end immediately instead of when they are empty.
    pub end_lobbies: Option<bool>,
}

/// The end of a lease on the wire; `None` without lease.
#[must_use]
pub fn lease_end(until: Timestamp) -> Option<String> {
    (until < Timestamp::NEVER).then(|| time(until))
}

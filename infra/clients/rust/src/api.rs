//! The bodies of requests and responses, as the OpenAPI document describes them; a test compares the two.
//!
//! What a request leaves at its default is not sent. Fields that a later release adds to responses are
//! ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Any JSON.
pub type Json = Value;

/// What a find wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FindLobbyRequest {
    /// Modes that the lobby may have; the first decides what is created.
    pub game_modes: Vec<String>,
    /// Regions that it may be in; the recommended one when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The client's latencies by region, in milliseconds; `None` for one that did not respond.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Option<f64>>,
    /// Tags that it must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Seats of a lobby created for this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_players: Option<u32>,
    /// Lobbies in which no seat is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_lobby_ids: Vec<String>,
    /// Whether to refuse rather than create a lobby.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prevent_auto_create_lobby: bool,
    /// Who comes.
    #[serde(flatten)]
    pub entry: Entry,
}

/// The lobby that a join wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JoinLobbyRequest {
    /// Its identifier, or its code.
    pub lobby_id: String,
    /// Who comes.
    #[serde(flatten)]
    pub entry: Entry,
}

/// The lobby that is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CreateLobbyRequest {
    /// Its mode.
    pub game_mode: String,
    /// Where it is to run; the recommended region when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether it may be found and listed; private when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publicity: Option<Publicity>,
    /// Its tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Its seats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_players: Option<u32>,
    /// What its game server gets with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobby_config: Option<Json>,
    /// Who comes.
    #[serde(flatten)]
    pub entry: Entry,
}

/// Who comes, in each request that takes a seat.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// The version of the game that the client is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// The response of a captcha that is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captcha: Option<Captcha>,
    /// Passed to the studio's own verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification_data: Option<serde_json::Map<String, Value>>,
    /// Players who want seats of one lobby together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party_size: Option<u32>,
    /// What the client says of its player; of a party, of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_data: Option<Json>,
    /// The same of each player of a party; not with `player_data`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub players_data: Vec<Json>,
}

/// What the captcha's provider gave the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Captcha {
    /// Of hCaptcha.
    Hcaptcha {
        /// The provider's text.
        client_response: String,
    },
    /// Of Turnstile.
    Turnstile {
        /// The provider's text.
        client_response: String,
    },
}

/// Whether a lobby may be found and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Publicity {
    /// It may.
    Public,
    /// It is joined by its identifier or code alone.
    Private,
}

/// A seat, or those of a party.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FindLobbyResponse {
    /// The lobby.
    pub lobby: Lobby,
    /// Where to connect, by label.
    pub ports: BTreeMap<String, Port>,
    /// The player; of a party the first.
    pub player: Player,
    /// All players of a party; none for a player alone.
    #[serde(default)]
    pub players: Vec<Player>,
}

impl FindLobbyResponse {
    /// The player tokens, in the order of the players.
    #[must_use]
    pub fn tokens(&self) -> Vec<String> {
        let players =
            if self.players.is_empty() { std::slice::from_ref(&self.player) } else { &self.players };
        players.iter().map(|player| player.token.clone()).collect()
    }
}

/// A lobby, as who enters it sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Lobby {
    /// Identifies it.
    pub lobby_id: String,
    /// What friends type in place of the identifier; only for who created it.
    pub code: Option<String>,
    /// Where it runs.
    pub region: Region,
}

/// A region.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Region {
    /// What requests call it.
    pub region_id: String,
    /// What players read.
    pub display_name: String,
}

/// A single port, with `port_range` absent, or a range, with `host` and `port` absent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Hostname and port.
    pub host: Option<String>,
    /// The host alone; an IPv6 address in brackets, as in URLs.
    pub hostname: String,
    /// The port.
    pub port: Option<u16>,
    /// The range.
    pub port_range: Option<PortRange>,
    /// Whether to connect with TLS.
    pub is_tls: bool,
}

/// Any port from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// The first.
    pub min: u16,
    /// The last.
    pub max: u16,
}

/// A player.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Player {
    /// What the player shows the game server.
    pub token: String,
}

/// Which page of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListLobbiesQuery {
    /// Whether states are wanted, too.
    pub include_state: bool,
    /// Lobbies of a page.
    pub limit: Option<u32>,
    /// Of the page before.
    pub cursor: Option<String>,
}

/// A page of the list of lobbies.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ListLobbiesResponse {
    /// The listable modes.
    pub game_modes: Vec<GameModeInfo>,
    /// The game's regions, the nearest first.
    pub regions: Vec<RegionInfo>,
    /// Public lobbies, those with a free seat first.
    pub lobbies: Vec<LobbyInfo>,
    /// Whether there are more than all pages may have.
    #[serde(default)]
    pub is_truncated: bool,
    /// Where there is another page: its cursor.
    pub next_cursor: Option<String>,
}

/// A mode.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GameModeInfo {
    /// Its name.
    pub game_mode_id: String,
}

/// A region as lists show it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RegionInfo {
    /// What requests call it.
    pub region_id: String,
    /// Who runs the machines there.
    pub provider_display_name: String,
    /// What players read.
    pub region_display_name: String,
    /// Where it is.
    pub datacenter_coord: Coord,
    /// How far from the player.
    pub datacenter_distance_from_client: Distance,
    /// What a client calls to measure its latency.
    pub probe: Option<String>,
}

/// A place on the globe, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Coord {
    /// North.
    pub latitude: f64,
    /// East.
    pub longitude: f64,
}

/// A distance; 0 where the player's place is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Distance {
    /// In kilometers.
    pub kilometers: f64,
    /// In miles.
    pub miles: f64,
}

/// A lobby as lists show it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LobbyInfo {
    /// Where it runs.
    pub region_id: String,
    /// Its mode.
    pub game_mode_id: String,
    /// Identifies it.
    pub lobby_id: String,
    /// Seats that finds fill it up to.
    pub max_players_normal: u32,
    /// Seats that joins fill it up to.
    pub max_players_direct: u32,
    /// Seats that parties fill it up to.
    pub max_players_party: u32,
    /// Seats held.
    pub total_player_count: u32,
    /// Those of them whose players have connected.
    pub connected_player_count: u32,
    /// Its state, where the request asks for states.
    pub state: Option<Json>,
}

/// The game's regions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ListRegionsResponse {
    /// The nearest first.
    pub regions: Vec<RegionInfo>,
}

/// The registration of a game server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegisterServerRequest {
    /// Identifies it over restarts; made by Muster when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_id: Option<String>,
    /// Names this start of the process.
    pub start_id: String,
    /// Its region.
    pub region_id: String,
    /// Modes that it runs; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub game_modes: Vec<String>,
    /// Lobbies that it runs at once.
    pub capacity: u32,
    /// What players connect to, by label.
    pub ports: BTreeMap<String, ServerPort>,
    /// How long its lease lasts after a heartbeat.
    pub lease_seconds: u64,
    /// Whether its lobbies are ready at once.
    pub auto_ready: bool,
    /// The build that it runs, for versions whose `servers` name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Value>,
}

/// Where players connect: at `port`, or at any of `port_range`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerPort {
    /// A name, or an address on which players reach it. When empty, the address that the registration of a
    /// server on demand comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range: Option<PortRange>,
    /// The protocol.
    pub protocol: Protocol,
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP, or WebSockets.
    Http,
    /// The same with TLS.
    Https,
    /// TCP.
    #[default]
    Tcp,
    /// TCP with TLS.
    TcpTls,
    /// UDP.
    Udp,
}

/// The response to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisterServerResponse {
    /// Identifies the game server.
    pub server_id: String,
}

/// A page of the lobbies that a game server runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct HeartbeatResponse {
    /// Whether it deregistered, and gets no lobby any more.
    #[serde(default)]
    pub draining: bool,
    /// Whether Muster had it started, and wants it no more: it is to end.
    #[serde(default)]
    pub stop: bool,
    /// Where there is another page: what its request repeats.
    pub cursor: Option<String>,
    /// The lobbies, the oldest first.
    pub lobbies: Vec<ServerLobby>,
}

/// A lobby, as its game server sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerLobby {
    /// Identifies it.
    pub lobby_id: String,
    /// Its own token.
    pub lobby_token: String,
    /// Its mode.
    pub game_mode: String,
    /// Where it runs.
    pub region_id: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Seats that finds fill it up to.
    pub max_players: u32,
    /// Its seats that are held.
    pub seats: HeldSeats,
    /// What its creator gave for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobby_config: Option<Json>,
    /// When it was created, in RFC 3339.
    pub created_at: String,
}

/// Seats that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSeats {
    /// Of players on their way.
    pub reserved: u32,
    /// Of players who connected.
    pub connected: u32,
}

/// Who connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectPlayerResponse {
    /// Names the player within the lobby, also after coming back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_id: Option<String>,
    /// How many tokens of the seat there were before.
    #[serde(default)]
    pub generation: u32,
    /// Whether another connection of the player may still be open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// Names the player's party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party_id: Option<String>,
    /// How many came together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub party_size: Option<u32>,
    /// What the client says of its player; nobody has checked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_data: Option<Json>,
}

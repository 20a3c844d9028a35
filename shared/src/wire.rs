//! The bodies of the interface, exactly as on the wire: JSON in snake case, unknown fields ignored, `null` as absent.

use std::{collections::BTreeMap, str::FromStr};

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    ambient::Timestamp,
    http::{object, objects_by_name, optional_object},
    ids::{GameMode, LobbyId, NamespaceId, RegionId, ServerId, VersionId},
    models::{PortNumbers, PortRange, Ports, ServerPort, Tags},
    rules::{
        geography::{Coordinates, MILES_PER_KILOMETER},
        ports::PortSpec,
    },
    settings::{self, CdnAuthType},
};

/// Request of lobbies.find (interface 4.1).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct FindLobbyRequest {
    /// Modes that the lobby may have.
    pub game_modes: Vec<String>,
    /// Regions that the lobby may be in; none given means the recommended one.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<String>,
    /// Tags that the lobby must have.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Tags,
    /// Seats of a lobby created for this request.
    #[serde(default)]
    pub max_players: Option<u32>,
    /// Whether no lobby may be created for this request.
    #[serde(default, deserialize_with = "null_as_default")]
    pub prevent_auto_create_lobby: bool,
    /// The client's answer to a captcha.
    #[serde(default, deserialize_with = "optional_object")]
    pub captcha: Option<Captcha>,
    /// What the studio's own verification is told.
    #[serde(default)]
    pub verification_data: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Request of lobbies.join.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct JoinLobbyRequest {
    /// The lobby; any text, of which only identifiers name one.
    pub lobby_id: String,
    /// The client's answer to a captcha.
    #[serde(default, deserialize_with = "optional_object")]
    pub captcha: Option<Captcha>,
    /// What the studio's own verification is told.
    #[serde(default)]
    pub verification_data: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Who may enter a lobby that a player created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Publicity {
    /// Everybody: it is found and listed like any other.
    Public,
    /// Who knows its identifier.
    #[default]
    Private,
}

impl TryFrom<String> for Publicity {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.as_str() {
            "public" => Ok(Self::Public),
            "private" => Ok(Self::Private),
            _ => Err("must be `public` or `private`"),
        }
    }
}

/// Request of lobbies.create.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CreateLobbyRequest {
    /// The lobby's mode.
    pub game_mode: String,
    /// Where it is to run; absent means the recommended region.
    #[serde(default)]
    pub region: Option<String>,
    /// Who may enter.
    #[serde(default, deserialize_with = "null_as_default")]
    pub publicity: Publicity,
    /// Its tags.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Tags,
    /// Its seats.
    #[serde(default)]
    pub max_players: Option<u32>,
    /// What its lobby server is told, any JSON.
    #[serde(default)]
    pub lobby_config: Option<serde_json::Value>,
    /// The client's answer to a captcha.
    #[serde(default, deserialize_with = "optional_object")]
    pub captcha: Option<Captcha>,
    /// What the studio's own verification is told.
    #[serde(default)]
    pub verification_data: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Answers to captchas (interface 2.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Captcha {
    /// To hCaptcha's.
    #[serde(default, deserialize_with = "optional_object")]
    pub hcaptcha: Option<CaptchaResponse>,
    /// To Turnstile's.
    #[serde(default, deserialize_with = "optional_object")]
    pub turnstile: Option<CaptchaResponse>,
}

/// The answer to one provider's captcha.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CaptchaResponse {
    /// What the provider gave the client.
    pub client_response: String,
}

/// Response of lobbies.find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindLobbyResponse {
    /// The lobby; it repeats ports and player, which deployed clients parse there.
    pub lobby: JoinLobby,
    /// Where to connect.
    pub ports: BTreeMap<String, Port>,
    /// Who connects.
    pub player: Player,
}

impl FindLobbyResponse {
    /// The response of a seat in a lobby.
    #[must_use]
    pub fn new(lobby_id: LobbyId, region: Region, ports: BTreeMap<String, Port>, token: String) -> Self {
        let player = Player { token };
        let lobby = JoinLobby { lobby_id, region, ports: ports.clone(), player: player.clone() };
        Self { lobby, ports, player }
    }
}

/// A lobby as find answers it (interface 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JoinLobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// Where it runs.
    pub region: Region,
    /// Where to connect.
    pub ports: BTreeMap<String, Port>,
    /// Who connects.
    pub player: Player,
}

/// A region (interface 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Region {
    /// Its short name, which requests use.
    pub region_id: RegionId,
    /// The name that players read.
    pub display_name: String,
}

/// A player (interface 2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Player {
    /// What the client shows the lobby server.
    pub token: String,
}

/// A port (interface 2.4); what does not apply is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Hostname and port, without a range.
    pub host: Option<String>,
    /// The host alone.
    pub hostname: String,
    /// The port, without a range.
    pub port: Option<u16>,
    /// The range, inclusive.
    pub port_range: Option<PortRange>,
    /// Whether to connect with TLS.
    pub is_tls: bool,
}

impl Port {
    fn at(hostname: &str, port: &ServerPort) -> Self {
        let (single, range) = match port.numbers {
            PortNumbers::Port(number) => (Some(number), None),
            PortNumbers::PortRange(range) => (None, Some(range)),
        };
        Self {
            host: single.map(|number| format!("{hostname}:{number}")),
            hostname: hostname.to_owned(),
            port: single,
            port_range: range,
            is_tls: port.protocol.is_tls(),
        }
    }
}

/// The ports of a game server as clients read them.
#[must_use]
pub fn ports(ports: &Ports) -> BTreeMap<String, Port> {
    ports.iter().map(|(label, port)| (label.clone(), Port::at(&port.hostname, port))).collect()
}

/// The same ports, all on `hostname`: a developer's machine.
#[must_use]
pub fn ports_on(hostname: &str, ports: &Ports) -> BTreeMap<String, Port> {
    ports.iter().map(|(label, port)| (label.clone(), Port::at(hostname, port))).collect()
}

/// Response of lobbies.list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ListLobbiesResponse {
    /// The modes whose lobbies may be listed.
    pub game_modes: Vec<GameModeInfo>,
    /// The game's regions, nearest first.
    pub regions: Vec<RegionInfo>,
    /// The lobbies.
    pub lobbies: Vec<LobbyInfo>,
}

/// A game mode as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GameModeInfo {
    /// Its name.
    pub game_mode_id: GameMode,
}

/// A lobby as lists show it.
#[derive(Clone, Debug, Serialize)]
pub struct LobbyInfo {
    /// Where it runs.
    pub region_id: RegionId,
    /// Its mode.
    pub game_mode_id: GameMode,
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// Players that find fills it up to.
    pub max_players_normal: u32,
    /// Players that joins fill it up to.
    pub max_players_direct: u32,
    /// Players of a party.
    pub max_players_party: u32,
    /// Seats held, reserved and connected.
    pub total_player_count: u32,
    /// What its lobby server says of it, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<serde_json::value::RawValue>>,
}

/// Response of regions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListRegionsResponse {
    /// The game's regions, nearest first.
    pub regions: Vec<RegionInfo>,
}

/// A region as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionInfo {
    /// Its short name.
    pub region_id: RegionId,
    /// The name of whoever runs the machines there.
    pub provider_display_name: String,
    /// The name that players read.
    pub region_display_name: String,
    /// Where it is, in degrees.
    pub datacenter_coord: Coord,
    /// How far from the client; 0 when nobody knows where that is.
    pub datacenter_distance_from_client: Distance,
}

/// A place on Earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coord {
    /// North.
    pub latitude: f64,
    /// East.
    pub longitude: f64,
}

/// A distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distance {
    /// In kilometres.
    pub kilometers: f64,
    /// In miles.
    pub miles: f64,
}

/// The regions of a game as a client at `viewer` reads them: nearest first, by name where that is not known.
#[must_use]
pub fn regions(
    regions: &BTreeMap<RegionId, settings::Region>,
    viewer: Option<Coordinates>,
) -> Vec<RegionInfo> {
    let info = |(region_id, region): (&RegionId, &settings::Region)| {
        let kilometers = viewer.map_or(0.0, |viewer| viewer.distance_km(region.coordinates()));
        RegionInfo {
            region_id: region_id.clone(),
            provider_display_name: region.provider_display_name.clone(),
            region_display_name: region.display_name.clone(),
            datacenter_coord: Coord { latitude: region.latitude, longitude: region.longitude },
            datacenter_distance_from_client: Distance { kilometers, miles: kilometers * MILES_PER_KILOMETER },
        }
    };
    let mut infos: Vec<_> = regions.iter().map(info).collect();
    let distance = |info: &RegionInfo| info.datacenter_distance_from_client.kilometers;
    infos.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    infos
}

/// Response of players.statistics; also how it is kept for the other instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerStatistics {
    /// Seats held in the namespace.
    pub player_count: u64,
    /// The same by mode.
    pub game_modes: BTreeMap<GameMode, GameModeStatistics>,
}

/// Seats held in lobbies of a mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameModeStatistics {
    /// Seats held.
    pub player_count: u64,
    /// The same by region.
    pub regions: BTreeMap<RegionId, RegionStatistics>,
}

/// Seats held in lobbies of a mode in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionStatistics {
    /// Seats held.
    pub player_count: u64,
}

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
    /// How long it is taken to live after each heartbeat; absent means for ever.
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
    /// Until when it is taken to live; absent without lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<String>,
}

/// Request of servers.heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HeartbeatRequest {
    /// The server.
    pub server_id: ServerId,
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
    pub lobby_config: Option<Box<serde_json::value::RawValue>>,
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
}

/// Request of versions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateVersionRequest {
    /// The name that people read.
    pub display_name: String,
    /// What the version configures.
    #[serde(deserialize_with = "object")]
    pub config: settings::VersionConfig,
}

/// Response of versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateVersionResponse {
    /// The version.
    pub version_id: VersionId,
}

/// Request of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateNamespaceRequest {
    /// The name that people read.
    pub display_name: String,
    /// The version that it is to run.
    pub version_id: String,
    /// Its name in addresses.
    pub name_id: String,
}

/// Response of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateNamespaceResponse {
    /// The namespace.
    pub namespace_id: NamespaceId,
}

/// Request of tokens/development.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateDevelopmentTokenRequest {
    /// The developer's machine.
    pub hostname: String,
    /// Its ports by label.
    #[serde(deserialize_with = "objects_by_name")]
    pub ports: BTreeMap<String, PortSpec>,
}

/// Response of the operations that issue a token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TokenResponse {
    /// The token, never to be seen again.
    pub token: String,
}

/// Response of bootstrap (interface 2.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BootstrapResponse {
    /// Who may use the deployment.
    pub access: Access,
    /// Captchas that clients may meet.
    pub captcha: BootstrapCaptcha,
    /// The kind of cluster.
    pub cluster: &'static str,
    /// Domains of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<Domains>,
    /// Ways to log in.
    pub login_methods: LoginMethods,
    /// Origins that URLs are built from.
    pub origins: Origins,
}

/// Who may use a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Its owners alone.
    #[default]
    Private,
    /// Everybody.
    Public,
}

impl FromStr for Access {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "private" => Ok(Self::Private),
            "public" => Ok(Self::Public),
            _ => Err("must be `private` or `public`"),
        }
    }
}

/// Captchas that clients may meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BootstrapCaptcha {
    /// Turnstile, when it is set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnstile: Option<Turnstile>,
}

/// Turnstile's public part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turnstile {
    /// The key that pages show.
    pub site_key: String,
}

/// Domains hosting parts of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Domains {
    /// Of the CDN.
    pub cdn: String,
    /// Of game servers.
    pub job: String,
    /// Of everything else.
    pub main: String,
}

/// Ways to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoginMethods {
    /// By access token.
    pub access_token: bool,
    /// By email.
    pub email: bool,
}

/// Origins that URLs are built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origins {
    /// Of the hub.
    pub hub: String,
}

/// Request of mm-config/validate (interface 4.3) and of mm-config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchmakerConfigRequest {
    /// Lobbies that the namespace may hold.
    pub lobby_count_max: u32,
    /// Seats that one client may hold.
    pub max_players: u32,
}

/// Response of every operation that validates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationResponse {
    /// What would be refused; empty when valid.
    pub errors: Vec<ValidationError>,
}

impl ValidationResponse {
    /// The response for the refused `paths`.
    #[must_use]
    pub fn new(paths: Vec<Vec<String>>) -> Self {
        Self { errors: paths.into_iter().map(|path| ValidationError { path }).collect() }
    }
}

/// Where a value would be refused (interface 2.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// The parts of the path, the violation last.
    pub path: Vec<String>,
}

/// Request of cdn-auth (interface 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetCdnAuthTypeRequest {
    /// How the CDN is to authenticate.
    pub auth_type: CdnAuthType,
}

/// Request of auth-user (interface 4.5).
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct UpdateCdnAuthUserRequest {
    /// The user's name.
    pub user: String,
    /// A bcrypt hash.
    pub password: String,
}

/// Request of version (interface 4.6).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpdateNamespaceVersionRequest {
    /// The version that the namespace is to run.
    pub version_id: String,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// An instant as the wire has it: RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn time(at: Timestamp) -> String {
    let second = DateTime::from_secs(i64::try_from(at.secs()).unwrap_or(i64::MAX));
    // Only a time beyond the year 9999 would fail.
    let second = second.fmt(DateTimeFormat::DateTime).unwrap_or_default();
    format!("{}.{:03}Z", second.trim_end_matches('Z'), at.0 % 1_000)
}

/// The end of a lease as the wire has it; nothing without lease.
#[must_use]
pub fn lease_end(until: Timestamp) -> Option<String> {
    (until < Timestamp::NEVER).then(|| time(until))
}

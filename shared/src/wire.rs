//! The bodies of the interface, exactly as on the wire: JSON in snake case, unknown fields ignored, `null` as absent.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    http::optional_object,
    ids::{LobbyId, RegionId},
    models::{PortNumbers, PortRange, Ports, ServerPort, Tags},
    settings::CdnAuthType,
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

/// Request of mm-config/validate (interface 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ValidateMatchmakerConfigRequest {
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

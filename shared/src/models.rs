//! The values that the matchmaker works with: ports, pools, seats' places.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    ids::{GameMode, InvalidIdentifier, NamespaceId, RegionId, ServerId, VersionId},
    record::known,
};

/// What a game server speaks on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Protocol {
    /// Plain HTTP or WebSocket.
    Http,
    /// HTTP or WebSocket over TLS.
    Https,
    /// Plain TCP.
    Tcp,
    /// TCP over TLS.
    TcpTls,
    /// UDP.
    Udp,
    /// One that only a later release knows.
    #[serde(skip_deserializing)]
    Unknown,
}

impl TryFrom<String> for Protocol {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.as_str() {
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            "tcp" => Ok(Self::Tcp),
            "tcp_tls" => Ok(Self::TcpTls),
            "udp" => Ok(Self::Udp),
            _ => Err("must be `http`, `https`, `tcp`, `tcp_tls` or `udp`"),
        }
    }
}

impl Protocol {
    /// Whether clients must connect with TLS.
    #[must_use]
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::TcpTls)
    }
}

/// An inclusive range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// The lowest port.
    pub min: u16,
    /// The highest port.
    pub max: u16,
}

/// Where a labelled port leads: to one port or to any of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredNumbers", into = "StoredNumbers")]
pub enum PortNumbers {
    /// One port.
    Port(u16),
    /// Any port of an inclusive range.
    PortRange(PortRange),
    /// What only a later release knows.
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct StoredNumbers {
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_range: Option<PortRange>,
}

impl From<StoredNumbers> for PortNumbers {
    fn from(StoredNumbers { port, port_range }: StoredNumbers) -> Self {
        let port = port.map(Self::Port);
        port.or(port_range.map(Self::PortRange)).unwrap_or(Self::Unknown)
    }
}

impl From<PortNumbers> for StoredNumbers {
    fn from(numbers: PortNumbers) -> Self {
        let (port, port_range) = match numbers {
            PortNumbers::Port(port) => (Some(port), None),
            PortNumbers::PortRange(range) => (None, Some(range)),
            PortNumbers::Unknown => (None, None),
        };
        Self { port, port_range }
    }
}

/// One port of a game server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPort {
    /// The host that players connect to.
    pub hostname: String,
    /// One port or a range.
    #[serde(flatten)]
    pub numbers: PortNumbers,
    /// What is spoken there.
    #[serde(deserialize_with = "known_protocol")]
    pub protocol: Protocol,
}

fn known_protocol<'de, D: Deserializer<'de>>(from: D) -> Result<Protocol, D::Error> {
    known(from).map(|protocol| protocol.unwrap_or(Protocol::Unknown))
}

/// The ports of one game server by label, checked by [`crate::rules::ports`] where it registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ports(pub(crate) BTreeMap<String, ServerPort>);

impl Ports {
    /// Each label with its port, in order of the labels.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &ServerPort)> {
        self.0.iter()
    }

    /// Whether this release knows all of them. A server with others gets no lobby from it, and its lobbies no players: those could
    /// not be told where to connect.
    #[must_use]
    pub fn are_known(&self) -> bool {
        let is_known =
            |port: &ServerPort| port.numbers != PortNumbers::Unknown && port.protocol != Protocol::Unknown;
        self.0.values().all(is_known)
    }
}

/// What decides which lobbies a find can ever enter: namespace, version, game mode and region.
///
/// All lobbies of a pool are interchangeable but for their tags. As text: the four identifiers joined by `/`, which no
/// identifier contains, and for any shard but the first `~` and its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The version.
    pub version_id: VersionId,
    /// The game mode of that version.
    pub game_mode: GameMode,
    /// The region.
    pub region_id: RegionId,
    /// Its part of the index of candidates: the first, unless more is created and filled than one takes.
    pub shard: u8,
}

impl Pool {
    /// This pool, its first shard.
    #[must_use]
    pub fn whole(&self) -> Self {
        self.in_shard(0)
    }

    /// This pool in another shard.
    #[must_use]
    pub fn in_shard(&self, shard: u8) -> Self {
        Self { shard, ..self.clone() }
    }

    /// Whether `other` is the same pool, in whichever shard.
    #[must_use]
    pub fn is_shard_of(&self, other: &Self) -> bool {
        let Self { namespace_id, version_id, game_mode, region_id, shard: _ } = self;
        *namespace_id == other.namespace_id
            && *version_id == other.version_id
            && *game_mode == other.game_mode
            && *region_id == other.region_id
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace_id, version_id, game_mode, region_id, shard } = self;
        write!(f, "{namespace_id}/{version_id}/{game_mode}/{region_id}")?;
        if *shard > 0 { write!(f, "~{shard}") } else { Ok(()) }
    }
}

impl FromStr for Pool {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let (identifiers, shard) = match text.split_once('~') {
            Some((identifiers, shard)) => (identifiers, Some(shard)),
            None => (text, None),
        };
        let mut parts = identifiers.split('/');
        let mut next = || parts.next().ok_or(InvalidIdentifier);
        let pool = Self {
            namespace_id: next()?.parse()?,
            version_id: next()?.parse()?,
            game_mode: next()?.parse()?,
            region_id: next()?.parse()?,
            shard: shard.map_or(Ok(0), str::parse).map_err(|_| InvalidIdentifier)?,
        };
        // Each pool has one text, which is a key.
        if pool.to_string() == text { Ok(pool) } else { Err(InvalidIdentifier) }
    }
}

impl TryFrom<String> for Pool {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        text.parse()
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> Self {
        pool.to_string()
    }
}

/// A game server over the whole deployment: its namespace and its identifier there, joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerKey {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The server in it.
    pub server_id: ServerId,
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace_id, self.server_id)
    }
}

impl TryFrom<String> for ServerKey {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        let (namespace, server) = text.split_once('/').ok_or(InvalidIdentifier)?;
        Ok(Self { namespace_id: namespace.parse()?, server_id: server.parse()? })
    }
}

impl From<ServerKey> for String {
    fn from(key: ServerKey) -> Self {
        key.to_string()
    }
}

/// The tags of a lobby or a query.
pub type Tags = BTreeMap<String, String>;

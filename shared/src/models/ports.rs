//! Ports of game servers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use crate::base::record::known;

/// The protocol of a port.
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
            _ => Err(
                "must be `http`, `https`, `tcp`, `tcp_tls` or `udp`; for ws:// use `http`, for wss:// use `https`",
            ),
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

/// The number of a labelled port: one port or any of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredNumbers", into = "StoredNumbers")]
pub enum PortNumbers {
    /// One port.
    Port(u16),
    /// Any port of an inclusive range.
    PortRange(PortRange),
    /// A form that only a later release knows.
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
    /// Its protocol.
    #[serde(deserialize_with = "known_protocol")]
    pub protocol: Protocol,
}

fn known_protocol<'de, D: Deserializer<'de>>(from: D) -> Result<Protocol, D::Error> {
    known(from).map(|protocol| protocol.unwrap_or(Protocol::Unknown))
}

/// The ports of one game server by label, checked by [`crate::rules::ports`] at registration; none before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ports(pub(crate) BTreeMap<String, ServerPort>);

impl Ports {
    /// Each label with its port, in order of the labels.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &ServerPort)> {
        self.0.iter()
    }

    /// The host, number and protocol of each, whatever its label: where one process alone can listen. `None`
    /// if one is a range, of which many processes of a machine may each use a part.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        let single = |ServerPort { hostname, numbers, protocol }: &ServerPort| match numbers {
            PortNumbers::Port(port) => {
                let protocol = serde_json::json!(protocol);
                Some(format!("{}:{port}/{protocol}", hostname.to_ascii_lowercase()))
            }
            PortNumbers::PortRange(_) | PortNumbers::Unknown => None,
        };
        let ports: Option<BTreeSet<String>> = self.0.values().map(single).collect();
        ports.map(|ports| ports.into_iter().collect::<Vec<_>>().join(","))
    }

    /// Whether this release knows all of them. Otherwise it places no lobby on the server, and lets no player
    /// into the server's lobbies, because it cannot return where to connect.
    #[must_use]
    pub fn are_known(&self) -> bool {
        let is_known =
            |port: &ServerPort| port.numbers != PortNumbers::Unknown && port.protocol != Protocol::Unknown;
        self.0.values().all(is_known)
    }
}

//! Ports as requests describe them.

use serde::Deserialize;

use crate::{base::json::optional_object, models::ports::Protocol};

/// A port as somebody described it, whatever the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PortSpec {
    /// The host that players connect to; absent where it is the same for all ports.
    #[serde(default)]
    pub hostname: Option<String>,
    /// One port.
    #[serde(default)]
    pub port: Option<u32>,
    /// Or a range.
    #[serde(default, deserialize_with = "optional_object")]
    pub port_range: Option<PortRangeSpec>,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// An inclusive range of ports as somebody described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PortRangeSpec {
    /// The lowest port.
    pub min: u32,
    /// The highest port.
    pub max: u32,
}

//! Ports as requests describe them.

use serde::Deserialize;

use crate::{base::json::optional_object, models::ports::Protocol};

/// A port as a request describes it, with any numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PortSpec {
    /// The host that players connect to; absent if it is the same for all ports.
    #[serde(default)]
    pub hostname: Option<String>,
    /// One port.
    #[serde(default)]
    pub port: Option<u32>,
    /// Or a range.
    #[serde(default, deserialize_with = "optional_object")]
    pub port_range: Option<PortRangeSpec>,
    /// Its protocol.
    pub protocol: Protocol,
}

/// An inclusive range of ports as a request describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PortRangeSpec {
    /// The lowest port.
    pub min: u32,
    /// The highest port.
    pub max: u32,
}

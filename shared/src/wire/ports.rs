//! Ports as requests describe them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected, Visitor},
};

use crate::{base::json::optional_object, models::ports::Protocol};

/// A port as a request describes it, with any numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PortSpec {
    /// The host that players connect to; absent if it is the same for all ports.
    pub hostname: Option<String>,
    /// One port.
    #[serde(default, deserialize_with = "optional_port")]
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
    #[serde(deserialize_with = "port")]
    pub min: u32,
    /// The highest port.
    #[serde(deserialize_with = "port")]
    pub max: u32,
}

/// Any whole number. [`crate::rules::ports`] decides which are ports, and names the port's label.
struct PortNumber(u32);

impl<'de> Deserialize<'de> for PortNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = PortNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 1 to 65535")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<PortNumber, E> {
                let too_large = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
                number.try_into().map(PortNumber).map_err(too_large)
            }
        }

        from.deserialize_u32(Number)
    }
}

fn port<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    PortNumber::deserialize(from).map(|port| port.0)
}

fn optional_port<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(Option::<PortNumber>::deserialize(from)?.map(|port| port.0))
}

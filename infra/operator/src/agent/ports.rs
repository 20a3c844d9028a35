//! Ports of the option `--port`, and the numbers of them that a process gets.

use std::{collections::BTreeMap, str::FromStr};

use muster_client::api;
use shared::{
    models::{
        ports::{Ports, Protocol},
        violations::Violations,
    },
    wire::ports::{PortRangeSpec, PortSpec},
};

/// A port of the server, as `LABEL=NUMBER/PROTOCOL` or `LABEL=FIRST-LAST/PROTOCOL`; as `LABEL/PROTOCOL` it
/// has no number yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub label: String,
    has_number: bool,
    min: u16,
    max: u16,
    protocol: Protocol,
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "must be LABEL=FIRST-LAST/PROTOCOL, such as default=7777-7784/udp".to_owned();
        let (port, protocol) = text.rsplit_once('/').ok_or_else(form)?;
        let (label, numbers) =
            port.split_once('=').map_or((port, None), |(label, numbers)| (label, Some(numbers)));
        let numbers = numbers.map(|numbers| numbers.split_once('-').unwrap_or((numbers, numbers)));
        let number = |text: &str| text.parse::<u16>().map_err(|_| form());
        let (min, max) = match numbers {
            Some((min, max)) => (number(min)?, number(max)?),
            None => (0, 0),
        };
        let protocol =
            Protocol::try_from(protocol.to_owned()).map_err(|allowed| format!("the protocol {allowed}"))?;
        Ok(Self { label: label.to_owned(), has_number: numbers.is_some(), min, max, protocol })
    }
}

impl Port {
    /// It with `number`, unless it has some.
    ///
    /// # Errors
    /// When it has none and there is none.
    pub fn or_number(self, number: Option<u16>) -> Result<Self, String> {
        match (self.has_number, number) {
            (true, _) => Ok(self),
            (false, Some(number)) => Ok(Self { has_number: true, min: number, max: number, ..self }),
            (false, None) => {
                let label = self.label;
                Err(format!(
                    "--port {label}: needs a number, as {label}=7777/udp, because MUSTER_PORT has none"
                ))
            }
        }
    }

    /// How many numbers it has.
    pub fn count(&self) -> u32 {
        (u32::from(self.max) + 1).saturating_sub(self.min.into())
    }

    /// The number at `index` of the range, alone; `None` beyond its end.
    pub fn single(&self, index: u16) -> Option<Self> {
        let number = self.min.checked_add(index).filter(|number| *number <= self.max)?;
        Some(Self { min: number, max: number, ..self.clone() })
    }

    /// The environment variable with its number or range, and that.
    pub fn variable(&self) -> (String, String) {
        let label = self.label.to_uppercase().replace('-', "_");
        let numbers = match self.min == self.max {
            true => self.min.to_string(),
            false => format!("{}-{}", self.min, self.max),
        };
        (format!("MUSTER_PORT_{label}"), numbers)
    }

    fn spec(&self, hostname: &str) -> PortSpec {
        let (min, max) = (u32::from(self.min), u32::from(self.max));
        let is_single = min == max;
        PortSpec {
            hostname: Some(hostname.to_owned()),
            port: is_single.then_some(min),
            port_range: (!is_single).then_some(PortRangeSpec { min, max }),
            protocol: self.protocol,
        }
    }

    /// It as a registration describes it.
    pub fn described(&self, hostname: &str) -> api::ServerPort {
        let is_single = self.min == self.max;
        api::ServerPort {
            hostname: hostname.to_owned(),
            port: is_single.then_some(self.min),
            port_range: (!is_single).then_some(api::PortRange { min: self.min, max: self.max }),
            protocol: match self.protocol {
                Protocol::Http => api::Protocol::Http,
                Protocol::Https => api::Protocol::Https,
                // No option has an unknown one.
                Protocol::Tcp | Protocol::Unknown => api::Protocol::Tcp,
                Protocol::TcpTls => api::Protocol::TcpTls,
                Protocol::Udp => api::Protocol::Udp,
            },
        }
    }
}

/// Checks ports by the rules of a registration.
///
/// # Errors
/// What breaks them, and a label that is given twice.
pub(super) fn check(ports: &[Port], hostname: &str) -> Result<(), String> {
    let specs: BTreeMap<String, PortSpec> =
        ports.iter().map(|port| (port.label.clone(), port.spec(hostname))).collect();
    if specs.len() < ports.len() {
        return Err("a label is given twice".to_owned());
    }
    Ports::of_specs(&specs, None).map(|_| ()).map_err(|violations: Violations| violations.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn port(text: &str) -> Port {
        text.parse().unwrap()
    }

    #[test]
    fn a_port_is_a_number_or_a_range_of_which_each_process_gets_one() {
        let range = port("default=7777-7779/udp");
        assert_eq!(range.count(), 3);
        assert_eq!(range.single(2), Some(port("default=7779/udp")));
        assert_eq!(range.single(3), None);
        assert_eq!(
            json!(range.described("game.example")),
            json!({ "hostname": "game.example", "port_range": { "min": 7777, "max": 7779 }, "protocol": "udp" })
        );
        let open = port("default/udp");
        assert_eq!(open.clone().or_number(Some(7777)), Ok(port("default=7777/udp")));
        assert!(open.or_number(None).unwrap_err().contains("MUSTER_PORT"));
        assert_eq!(port("default=1/udp").or_number(Some(7777)), Ok(port("default=1/udp")));
        let admin = port("admin-web=80/http");
        assert_eq!(json!(admin.described("")), json!({ "port": 80, "protocol": "http" }));
        assert_eq!(admin.variable(), ("MUSTER_PORT_ADMIN_WEB".to_owned(), "80".to_owned()));
        assert_eq!(range.variable().1, "7777-7779");
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in ["7777", "a=7777", "a=x/udp", "a=1-x/udp", "a=70000/udp", "a=-1/udp"] {
            assert!(text.parse::<Port>().unwrap_err().contains("LABEL=FIRST-LAST/PROTOCOL"), "{text}");
        }
        assert!("a=1/ws".parse::<Port>().unwrap_err().contains("`tcp_tls`"));
        for (ports, violation) in [
            (&["A=1/udp"][..], "ports/A/label/invalid"),
            (&["a=9-8/udp"], "ports/a/port_range/min-above-max"),
            (&["a=0/udp"], "ports/a/port/out-of-range"),
            (&["a=1/https", "b=2/tcp"], "ports/b/mixed-tls"),
            (&["a=1/udp", "a=2/udp"], "twice"),
        ] {
            let ports: Vec<Port> = ports.iter().map(|text| port(text)).collect();
            assert!(check(&ports, "game.example").unwrap_err().contains(violation), "{violation}");
        }
        assert_eq!(check(&[port("a=1-2/udp"), port("b=1/tcp")], "game.example"), Ok(()));
    }
}

//! Which ports a game server may have (decision 7): all with TLS or none, sane labels, hosts and numbers.

use std::collections::BTreeMap;

use crate::{
    models::{
        ports::{PortNumbers, PortRange, Ports, ServerPort},
        violations::{Violations, listed},
    },
    rules::hostname,
    wire::ports::{PortRangeSpec, PortSpec},
};

/// The most ports of one server.
pub const PORTS_MAX: usize = 16;
/// Longest label, in characters.
const LABEL_CHARS_MAX: usize = 16;
/// Longest label in a violation, since a refused label may be any text.
const SHOWN_LABEL_CHARS_MAX: usize = 64;

impl Ports {
    /// The ports that `specs` describe, on `hostname` where they name none.
    ///
    /// # Errors
    /// Every violation: `too-few`, `too-many`, and by label `label/invalid`, `hostname/invalid`,
    /// `hostname/not-reachable`,
    /// `port/missing`, `port/ambiguous`, `port/out-of-range`, `port_range/out-of-range`,
    /// `port_range/min-above-max`, `mixed-tls`.
    pub fn of_specs(specs: &BTreeMap<String, PortSpec>, hostname: Option<&str>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        if specs.is_empty() {
            violations.add(&["ports", "too-few"], format!("1 to {PORTS_MAX}"));
        }
        if specs.len() > PORTS_MAX {
            violations.add(&["ports", "too-many"], format!("1 to {PORTS_MAX}"));
            // A list of each port's violations would have no bound.
            return Err(violations);
        }
        let mut ports = BTreeMap::new();
        let is_tls = |spec: &PortSpec| spec.protocol.is_tls();
        let mixed = specs.values().any(is_tls) && !specs.values().all(is_tls);
        let mixed = mixed.then(|| {
            let with_tls = specs.iter().filter(|(_, spec)| is_tls(spec));
            let with_tls: Vec<String> = with_tls.map(|(label, _)| shown(label)).collect();
            format!("https and tcp_tls on all ports or on none; here only on {}", listed(&with_tls))
        });
        for (label, spec) in specs {
            let shown = shown(label);
            if !is_label(label) {
                let allowed = format!("1 to {LABEL_CHARS_MAX} characters of a-z, 0-9 and inner hyphens");
                violations.add(&["ports", &shown, "label", "invalid"], allowed);
            }
            let hostname = hostname::parse(spec.hostname.as_deref().or(hostname).unwrap_or_default());
            if let Err(invalid) = hostname {
                violations.add(&["ports", &shown, "hostname", invalid.violation()], invalid.to_string());
            }
            if let Some(mixed) = &mixed {
                violations.add(&["ports", &shown, "mixed-tls"], mixed);
            }
            let numbers = numbers(spec);
            if let Err(([field, violation], allowed)) = numbers {
                violations.add(&["ports", &shown, field, violation], allowed);
            }
            if let (Ok(hostname), Ok(numbers)) = (hostname, numbers) {
                ports.insert(label.clone(), ServerPort { hostname, numbers, protocol: spec.protocol });
            }
        }
        if violations.is_empty() { Ok(Self(ports)) } else { Err(violations) }
    }
}

impl TryFrom<BTreeMap<String, ServerPort>> for Ports {
    type Error = String;

    fn try_from(ports: BTreeMap<String, ServerPort>) -> Result<Self, String> {
        let spec = |ServerPort { hostname, numbers, protocol }: &ServerPort| {
            let (port, port_range) = match *numbers {
                PortNumbers::Port(port) => (Some(port.into()), None),
                PortNumbers::PortRange(PortRange { min, max }) => {
                    (None, Some(PortRangeSpec { min: min.into(), max: max.into() }))
                }
                PortNumbers::Unknown => (None, None),
            };
            PortSpec { hostname: Some(hostname.clone()), port, port_range, protocol: *protocol }
        };
        let specs = ports.iter().map(|(label, port)| (label.clone(), spec(port))).collect();
        Self::of_specs(&specs, None).map_err(|violations| format!("the ports are not valid: {violations}"))
    }
}

/// What a violation is of and which it is, and what is allowed.
type Refused = ([&'static str; 2], &'static str);

fn numbers(spec: &PortSpec) -> Result<PortNumbers, Refused> {
    let number = |number: u32| u16::try_from(number).ok().filter(|number| *number > 0);
    let out_of_range = |field| ([field, "out-of-range"], "1 to 65535");
    match (spec.port, spec.port_range) {
        (Some(port), None) => number(port).map(PortNumbers::Port).ok_or(out_of_range("port")),
        (None, Some(PortRangeSpec { min, max })) => match (number(min), number(max)) {
            (Some(min), Some(max)) if min <= max => Ok(PortNumbers::PortRange(PortRange { min, max })),
            (Some(_), Some(_)) => Err((["port_range", "min-above-max"], "`min` is at most `max`")),
            _ => Err(out_of_range("port_range")),
        },
        (None, None) => Err((["port", "missing"], "`port` or `port_range`")),
        (Some(_), Some(_)) => Err((["port", "ambiguous"], "`port` or `port_range`, not both")),
    }
}

fn shown(label: &str) -> String {
    label.chars().take(SHOWN_LABEL_CHARS_MAX).collect()
}

fn is_label(text: &str) -> bool {
    text.len() <= LABEL_CHARS_MAX
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(specs: serde_json::Value) -> Vec<String> {
        let specs = serde_json::from_value(specs).unwrap();
        match Ports::of_specs(&specs, None) {
            Ok(_) => Vec::new(),
            Err(violations) => violations.joined().collect(),
        }
    }

    fn one(label: &str, fields: serde_json::Value) -> serde_json::Value {
        let mut port = json!({ "hostname": "eu-1.example.com", "protocol": "udp" });
        port.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ label: port })
    }

    #[test]
    fn ports_of_one_kind_pass() {
        let host = "eu-1.example.com";
        for specs in [
            json!({ "game": { "hostname": host, "port": 1, "protocol": "udp" },
                    "chat": { "hostname": host, "port": 65_535, "protocol": "http" } }),
            json!({ "game": { "hostname": host, "port": 7777, "protocol": "tcp_tls" },
                    "web-2": { "hostname": host, "port": 7777, "protocol": "https" } }),
            one("g", json!({ "port_range": { "min": 1, "max": 65_535 } })),
            one("g", json!({ "port_range": { "min": 7, "max": 7 } })),
            one("g", json!({ "port": 7, "hostname": "[2001:db8::1]" })),
            one("g", json!({ "port": 7, "hostname": "2001:db8::1" })),
            one("g", json!({ "port": 7, "hostname": "192.0.2.7" })),
            one("g", json!({ "port": 7, "hostname": "game_1.example.com" })),
        ] {
            assert_eq!(violations(specs.clone()), [""; 0], "{specs}");
        }
    }

    #[test]
    fn tls_and_plain_ports_are_never_mixed_and_each_label_is_named() {
        let mixed = json!({
            "game": { "hostname": "a", "port": 1, "protocol": "udp" },
            "web": { "hostname": "a", "port": 2, "protocol": "https" },
        });
        assert_eq!(violations(mixed), ["ports/game/mixed-tls", "ports/web/mixed-tls"]);
    }

    #[test]
    fn labels_hosts_and_numbers_are_checked() {
        for label in ["", "-a", "a-", "A", "a_b", "abcdefghijklmnopq"] {
            let refused = [format!("ports/{label}/label/invalid")];
            assert_eq!(violations(one(label, json!({ "port": 1 }))), refused, "{label}");
        }
        for (fields, refused) in [
            (json!({ "port": 0 }), "port/out-of-range"),
            (json!({ "port": 65_536 }), "port/out-of-range"),
            (json!({ "port_range": { "min": 2, "max": 1 } }), "port_range/min-above-max"),
            (json!({ "port_range": { "min": 0, "max": 1 } }), "port_range/out-of-range"),
            (json!({ "port_range": { "min": 1, "max": 65_536 } }), "port_range/out-of-range"),
            (json!({}), "port/missing"),
            (json!({ "port": 1, "port_range": { "min": 1, "max": 2 } }), "port/ambiguous"),
            (json!({ "port": 1, "hostname": "" }), "hostname/invalid"),
            (json!({ "port": 1, "hostname": "a b" }), "hostname/invalid"),
            (json!({ "port": 1, "hostname": "a:80" }), "hostname/invalid"),
            (json!({ "port": 1, "hostname": "a..b" }), "hostname/invalid"),
            (json!({ "port": 1, "hostname": "-a" }), "hostname/invalid"),
            (json!({ "port": 1, "hostname": "0.0.0.0" }), "hostname/not-reachable"),
            (json!({ "port": 1, "hostname": "a".repeat(254) }), "hostname/invalid"),
        ] {
            assert_eq!(violations(one("g", fields.clone())), [format!("ports/g/{refused}")], "{fields}");
        }
        assert_eq!(violations(json!({})), ["ports/too-few"]);
        let many: serde_json::Map<_, _> = (0..17)
            .map(|n| (format!("p{n}"), json!({ "hostname": "a", "port": 1, "protocol": "udp" })))
            .collect();
        assert_eq!(violations(many.into()), ["ports/too-many"]);
    }

    #[test]
    fn all_violations_are_reported_at_once() {
        let specs = json!({
            "A": { "hostname": "", "port": 0, "protocol": "udp" },
            "b": { "hostname": "b", "protocol": "udp" },
        });
        assert_eq!(
            violations(specs),
            [
                "ports/A/label/invalid",
                "ports/A/hostname/invalid",
                "ports/A/port/out-of-range",
                "ports/b/port/missing"
            ]
        );
    }
}

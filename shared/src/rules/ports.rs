//! Which ports a game server may have (decisions on ports): all with TLS or none, sane labels, hosts and numbers.

use std::collections::BTreeMap;

use crate::models::{PortNumbers, Ports, ServerPort};

/// The most ports of one server.
pub const PORTS_MAX: usize = 16;
/// Longest label, in characters.
const LABEL_CHARS_MAX: usize = 16;
/// Longest hostname, in characters (RFC 1035).
const HOSTNAME_CHARS_MAX: usize = 253;

/// Why ports were refused, naming the labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPorts {
    /// No port, or more than [`PORTS_MAX`].
    #[error("a server has 1 to {PORTS_MAX} ports")]
    Count,
    /// A label that is not `[a-z0-9]([a-z0-9-]*[a-z0-9])?` of at most 16 characters.
    #[error("the label `{0}` must be 1 to 16 characters of a-z, 0-9 and inner hyphens")]
    Label(String),
    /// A hostname that is empty, too long or has characters that no host has.
    #[error("the port `{0}` needs a hostname")]
    Hostname(String),
    /// Port 0, or a range whose minimum lies above its maximum.
    #[error("the port `{0}` needs a number from 1 to 65535, or a range whose min is at most its max")]
    Number(String),
    /// TLS and plain ports together.
    #[error("`{tls}` uses TLS and `{plain}` does not; the ports of one lobby are all TLS or all not")]
    MixedTls {
        /// A label with TLS.
        tls: String,
        /// A label without.
        plain: String,
    },
}

impl TryFrom<BTreeMap<String, ServerPort>> for Ports {
    type Error = InvalidPorts;

    fn try_from(ports: BTreeMap<String, ServerPort>) -> Result<Self, InvalidPorts> {
        if !(1..=PORTS_MAX).contains(&ports.len()) {
            return Err(InvalidPorts::Count);
        }
        for (label, port) in &ports {
            if !is_label(label) {
                return Err(InvalidPorts::Label(label.clone()));
            }
            if !is_hostname(&port.hostname) {
                return Err(InvalidPorts::Hostname(label.clone()));
            }
            let is_number = match port.numbers {
                PortNumbers::Port(port) => port > 0,
                PortNumbers::PortRange(range) => range.min > 0 && range.min <= range.max,
            };
            if !is_number {
                return Err(InvalidPorts::Number(label.clone()));
            }
        }
        let first = |is_tls| ports.iter().find(|(_, port)| port.protocol.is_tls() == is_tls);
        if let (Some((tls, _)), Some((plain, _))) = (first(true), first(false)) {
            return Err(InvalidPorts::MixedTls { tls: tls.clone(), plain: plain.clone() });
        }
        Ok(Self(ports))
    }
}

fn is_label(text: &str) -> bool {
    text.len() <= LABEL_CHARS_MAX
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_hostname(text: &str) -> bool {
    (1..=HOSTNAME_CHARS_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{PortRange, Protocol};

    fn port(protocol: Protocol, numbers: PortNumbers) -> ServerPort {
        ServerPort { hostname: "eu-1.example.com".to_owned(), numbers, protocol }
    }

    fn ports(entries: &[(&str, Protocol, PortNumbers)]) -> Result<Ports, InvalidPorts> {
        let entries =
            entries.iter().map(|(label, protocol, numbers)| ((*label).to_owned(), port(*protocol, *numbers)));
        entries.collect::<BTreeMap<_, _>>().try_into()
    }

    const ONE: PortNumbers = PortNumbers::Port(7777);

    #[test]
    fn ports_of_one_kind_pass() {
        assert!(ports(&[("game", Protocol::Udp, ONE), ("chat", Protocol::Http, ONE)]).is_ok());
        assert!(ports(&[("game", Protocol::TcpTls, ONE), ("web-2", Protocol::Https, ONE)]).is_ok());
        let range = PortNumbers::PortRange(PortRange { min: 1, max: 65_535 });
        assert!(ports(&[("g", Protocol::Udp, range)]).is_ok());
    }

    #[test]
    fn tls_and_plain_ports_are_never_mixed() {
        let mixed = ports(&[("game", Protocol::Udp, ONE), ("web", Protocol::Https, ONE)]);
        assert_eq!(mixed, Err(InvalidPorts::MixedTls { tls: "web".to_owned(), plain: "game".to_owned() }));
    }

    #[test]
    fn labels_hosts_and_numbers_are_checked() {
        for label in ["", "-a", "a-", "A", "a_b", "abcdefghijklmnopq"] {
            let refused = Err(InvalidPorts::Label(label.to_owned()));
            assert_eq!(ports(&[(label, Protocol::Udp, ONE)]), refused, "{label}");
        }
        let backwards = PortNumbers::PortRange(PortRange { min: 2, max: 1 });
        let zero = PortNumbers::PortRange(PortRange { min: 0, max: 1 });
        for numbers in [PortNumbers::Port(0), backwards, zero] {
            let refused = Err(InvalidPorts::Number("g".to_owned()));
            assert_eq!(ports(&[("g", Protocol::Udp, numbers)]), refused);
        }
        assert_eq!(ports(&[]), Err(InvalidPorts::Count));
        let no_host = ServerPort { hostname: String::new(), ..port(Protocol::Udp, ONE) };
        let refused = Ports::try_from(BTreeMap::from([("g".to_owned(), no_host)]));
        assert_eq!(refused, Err(InvalidPorts::Hostname("g".to_owned())));
    }
}

//! Which hosts clients can connect to: a name, an IPv4 address or an IPv6 address.
//!
//! Browsers build URLs of them, so a host is valid only if a URL with it has the same host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

use crate::rules::public_url::{is_public_address, is_public_name};

/// Longest name, in characters (RFC 1035).
const NAME_CHARS_MAX: usize = 253;
/// Longest part of a name between two dots, in characters (RFC 1035).
const LABEL_CHARS_MAX: usize = 63;

/// Text that is no host to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostname {
    /// It is neither a name nor an address.
    #[error("a name or an address, without scheme, port and path")]
    Malformed,
    /// It is an address on which programs listen, or one of a group.
    #[error(
        "the address that players connect to; a server may listen on 0.0.0.0 or ::, but nobody can connect there"
    )]
    NotReachable,
}

impl InvalidHostname {
    /// Its violation, as the last part of a path.
    #[must_use]
    pub const fn violation(self) -> &'static str {
        match self {
            Self::Malformed => "invalid",
            Self::NotReachable => "not-reachable",
        }
    }
}

/// The host in `text`, as URLs have it, so that a colon and a port can follow: a name in its ASCII form, an
/// IPv6 address in brackets.
///
/// # Errors
/// [`InvalidHostname`].
pub fn parse(text: &str) -> Result<String, InvalidHostname> {
    let bare: Option<Ipv6Addr> = text.parse().ok();
    let host = bare.map_or_else(|| text.to_owned(), |_| format!("[{text}]"));
    let parsed = Host::parse(&host).map_err(|_| InvalidHostname::Malformed)?;
    let address = match parsed {
        Host::Domain(name) => {
            let name = if host.is_ascii() { host } else { name };
            return if is_name(&name) { Ok(name) } else { Err(InvalidHostname::Malformed) };
        }
        // URLs have other spellings of addresses, too, which not every client reads.
        Host::Ipv4(address) if host.parse() == Ok(address) => IpAddr::V4(address),
        Host::Ipv4(_) => return Err(InvalidHostname::Malformed),
        Host::Ipv6(address) => address.to_canonical(),
    };
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let is_reachable = !address.is_unspecified() && !address.is_multicast() && !is_broadcast;
    if is_reachable { Ok(host) } else { Err(InvalidHostname::NotReachable) }
}

/// Whether clients on other networks may reach `hostname`, which [`parse`] returned.
#[must_use]
pub fn is_public(hostname: &str) -> bool {
    let address = hostname.trim_start_matches('[').trim_end_matches(']').parse();
    address.map_or_else(|_| is_public_name(hostname), is_public_address)
}

/// Underscores are in names of containers and of services.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_CHARS_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= NAME_CHARS_MAX && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn names_and_addresses_are_hosts_of_urls() {
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61));
        for (text, host) in [
            ("localhost", "localhost"),
            ("EU-1.example.com", "EU-1.example.com"),
            ("game_1.example.com", "game_1.example.com"),
            ("_game._udp.example.com", "_game._udp.example.com"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("\u{65e5}\u{672c}.example", "xn--wgv71a.example"),
            ("192.0.2.7", "192.0.2.7"),
            ("::1", "[::1]"),
            ("2001:db8::7", "[2001:db8::7]"),
            ("[2001:DB8::7]", "[2001:DB8::7]"),
            (longest.as_str(), longest.as_str()),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(host), "{text}");
            let url: Url = format!("ws://{host}:7777/").parse().unwrap();
            assert_eq!((url.port(), url.path()), (Some(7777), "/"), "{text}");
            assert!(url.host_str().unwrap().eq_ignore_ascii_case(host), "{text}: {url}");
            assert_eq!(parse(host).as_deref(), Ok(host), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ".",
            "a.",
            "a..b",
            "-a",
            "a-",
            "a b",
            "a/b",
            "a:80",
            "http://a",
            "user@a",
            "a%62",
            "*",
            "256.1.1.1",
            "1.2.3",
            "0x7f.1",
            "2130706433",
            "1.2.3.4.5",
            "xn--a",
            "[1.2.3.4]",
            "[::1",
            "::1]",
            "[fe80::1%eth0]",
            "fe80::1%eth0",
            "[::1]:80",
            "\u{ff11}.example\u{3002}",
            "a\u{ad}\u{2f}b",
            &"a".repeat(64),
            &"a.".repeat(127),
        ] {
            assert_eq!(parse(text), Err(InvalidHostname::Malformed), "{text}");
        }
    }

    #[test]
    fn addresses_to_which_nobody_can_connect_are_refused() {
        for text in [
            "0.0.0.0",
            "::",
            "[::]",
            "0:0:0:0:0:0:0:0",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "ff02::1",
            "[ff0e::1]",
            "::ffff:224.0.0.1",
        ] {
            assert_eq!(parse(text), Err(InvalidHostname::NotReachable), "{text}");
        }
    }
}

//! Which URLs of a studio Muster calls: https, on a public address, so that no version makes a function call
//! its own machine, its network or the cloud's metadata.
//!
//! This file checks only a host name's form. Each call checks the addresses that it resolves to
//! ([`crate::outside::web_client`]).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Longest address, in bytes.
pub(super) const URL_BYTES_MAX: usize = 2_048;

/// The URL in `text`, if Muster may call it.
///
/// # Errors
/// The violation, as the last part of its path.
pub fn parse(text: &str) -> Result<Url, &'static str> {
    if text.len() > URL_BYTES_MAX {
        return Err("too-long");
    }
    // The parser reads decimal, octal, hexadecimal and shortened spellings of IPv4 addresses as browsers and
    // resolvers do.
    let url = Url::parse(text).map_err(|_| "invalid")?;
    if url.scheme() != "https" {
        return Err("not-https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has-credentials");
    }
    let is_public = match url.host() {
        None => return Err("invalid"),
        Some(Host::Ipv4(address)) => is_public_address(address.into()),
        Some(Host::Ipv6(address)) => is_public_address(address.into()),
        Some(Host::Domain(name)) => is_public_name(name),
    };
    if is_public { Ok(url) } else { Err("not-public") }
}

/// Whether a name may be on the public Internet: others resolve, if at all, to the machine or its network.
pub(super) fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.contains('.')
        && !name.ends_with(".localhost")
        && !name.ends_with(".internal")
        && !name.ends_with(".local")
}

/// Whether an address is on the public Internet: in none of IANA's special ranges, in any notation.
#[must_use]
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Excludes IANA's special IPv4 addresses, multicast and reserved addresses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || address.is_private()
        || (a == 100 && (64..128).contains(&b))
        || address.is_loopback()
        || address.is_link_local()
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || address.is_documentation()
        || (a == 198 && (b == 18 || b == 19));
    !is_special && a < 224
}

/// Only global unicast, without ranges for translation, tunnels and documentation.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_global_unicast = first & 0xe000 == 0x2000;
    let is_ietf_protocol = first == 0x2001 && second < 0x0200;
    let is_documentation = (first == 0x2001 && second == 0x0db8) || (first == 0x3fff && second < 0x1000);
    let is_6to4 = first == 0x2002;
    is_global_unicast && !is_ietf_protocol && !is_documentation && !is_6to4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_only_a_function_can_reach_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.0.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "fd00:ec2::254",
            "fc00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
        ] {
            assert!(!is_public_address(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_next_to_special_ones_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:200::1",
            "2001:4860::1",
            "2606:4700::1111",
            "2a00::1",
        ] {
            assert!(is_public_address(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn only_https_to_a_public_host_may_be_called() {
        let long = format!("https://a.example/{}", "x".repeat(URL_BYTES_MAX));
        for (url, problem) in [
            ("", "invalid"),
            ("/relative", "invalid"),
            ("https://", "invalid"),
            ("https://a.example:99999/", "invalid"),
            (long.as_str(), "too-long"),
            ("http://verify.example/", "not-https"),
            ("ftp://verify.example/", "not-https"),
            ("file:///etc/passwd", "not-https"),
            ("https://user:password@verify.example/", "has-credentials"),
            ("https://user@verify.example/", "has-credentials"),
            ("https://127.0.0.1/", "not-public"),
            ("https://2130706433/", "not-public"),
            ("https://0x7f000001/", "not-public"),
            ("https://0x7f.1/", "not-public"),
            ("https://0177.0.0.1/", "not-public"),
            ("https://127.1/", "not-public"),
            ("https://169.254.169.254/latest/meta-data/", "not-public"),
            ("https://2852039166/", "not-public"),
            ("https://0xa9fea9fe/", "not-public"),
            ("https://10.1.2.3:8443/", "not-public"),
            ("https://[::1]/", "not-public"),
            ("https://[::ffff:10.0.0.1]/", "not-public"),
            ("https://[::ffff:a9fe:a9fe]/", "not-public"),
            ("https://[fd00:ec2::254]/", "not-public"),
            ("https://１２７.0.0.1/", "not-public"),
            ("https://localhost/", "not-public"),
            ("https://LOCALHOST./", "not-public"),
            ("https://a.localhost/", "not-public"),
            ("https://metadata.google.internal/", "not-public"),
            ("https://printer.local/", "not-public"),
            ("https://intranet/", "not-public"),
        ] {
            assert_eq!(parse(url), Err(problem), "{url}");
        }
        for url in [
            "https://verify.example/",
            "https://verify.example:8443/a?b=c",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
        ] {
            assert_eq!(parse(url).map(String::from).as_deref(), Ok(url));
        }
    }
}

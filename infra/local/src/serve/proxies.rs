//! The address of a client behind proxies that the operator names.
//!
//! Anybody can write `X-Forwarded-For`, so it counts only from a named proxy, and only back to the first hop
//! that is none.

use std::{net::IpAddr, str::FromStr};

use http::HeaderMap;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// A proxy's address, or a network of proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many leading bits of the address count.
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "name a proxy by its address, such as 127.0.0.1, or a network as 10.0.0.0/8".to_owned();
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| form())?.to_canonical();
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), |bits| bits.parse().map_err(|_| form()))?;
        if bits > all {
            return Err(form());
        }
        let network = Self { address, bits };
        // Whoever writes 10.0.0.1/8 means one of two things.
        if masked(address, bits) != bits_of(address) {
            return Err(format!("{text} has bits behind its prefix: {}", form()));
        }
        Ok(network)
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == bits_of(self.address)
    }
}

/// An address in the upper bits.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(address: IpAddr, bits: u8) -> u128 {
    bits_of(address) & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

/// The proxies between clients and this machine; by default none.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Vec<Network>);

impl Proxies {
    /// These.
    #[must_use]
    pub const fn new(named: Vec<Network>) -> Self {
        Self(named)
    }

    /// The address of the client of a request that came from `peer`: `peer` itself unless it is a named
    /// proxy, else the last hop in `X-Forwarded-For` that is none. A proxy that names no address is the
    /// client.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        // Proxies append, each to the same header or to one of its own below.
        let lines: Vec<_> = headers.get_all(X_FORWARDED_FOR).iter().collect();
        let mut hops = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        while self.has(client) {
            match hops.next().and_then(address) {
                Some(hop) => client = hop,
                None => break,
            }
        }
        client
    }

    /// Whether a request shows that `peer` is a proxy which nobody named, so that all its clients count as
    /// one.
    #[must_use]
    pub fn misses(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        headers.contains_key(X_FORWARDED_FOR) && !self.has(peer.to_canonical())
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// The address of a hop, of which some proxies write the port, too.
fn address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(hop, |(inner, _)| inner);
    let parsed =
        bare.parse().ok().or_else(|| hop.parse::<std::net::SocketAddr>().ok().map(|found| found.ip()));
    parsed.map(|found: IpAddr| found.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(named: &[&str], peer: &str, lines: &[&str]) -> String {
        let proxies = Proxies::new(named.iter().map(|text| text.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn a_client_is_the_last_hop_that_is_no_named_proxy() {
        let own = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];
        for (peer, lines, expected) in [
            ("127.0.0.1", &["203.0.113.9"][..], "203.0.113.9"),
            ("127.0.0.1", &["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
            ("127.0.0.1", &["203.0.113.9, 10.1.2.3"], "203.0.113.9"),
            ("127.0.0.1", &["198.51.100.1", "203.0.113.9, 10.1.2.3", "fd00::7"], "203.0.113.9"),
            ("::ffff:127.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("127.0.0.1", &["203.0.113.9:5000"], "203.0.113.9"),
            // What a client wrote itself, before what its own connection adds.
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("127.0.0.1", &["10.9.9.9, nonsense"], "127.0.0.1"),
            ("127.0.0.1", &["10.9.9.9"], "10.9.9.9"),
            ("127.0.0.1", &[], "127.0.0.1"),
        ] {
            assert_eq!(client(&own, peer, lines), expected, "{peer} {lines:?}");
        }
        assert_eq!(client(&[], "127.0.0.1", &["203.0.113.9"]), "127.0.0.1", "nobody is named");
        assert_eq!(client(&["0.0.0.0/0"], "192.0.2.1", &["203.0.113.9"]), "203.0.113.9");
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network() {
        for wrong in ["", "proxy.example", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.1/8", "::1/129"] {
            assert!(wrong.parse::<Network>().unwrap_err().contains("10.0.0.0/8"), "{wrong}");
        }
    }
}

//! Which client asks: a keyed hash of its address, so that no table holds an address that anybody could read.
//!
//! Who has one IPv6 address has a network of 2^64 of them, so those count by /64. The hash is another one in
//! each namespace, so that studios cannot tell each other's players. A rotated signing key makes strangers of
//! all clients: what was known of them is forgotten.

use std::{fmt, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::models::ids::NamespaceId;

/// Bytes of a hash that are kept: with half of SHA-256 no two of a deployment's clients share one.
const HASH_BYTES: usize = 16;
/// Bytes of an IPv6 address that name its network.
const NETWORK_BYTES: usize = 8;

/// A client's address as Muster keeps it: 22 characters of unpadded URL-safe Base64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientAddress(String);

impl ClientAddress {
    /// The client of `namespace_id` at `address`, as [`crate::request::Request::client_ip`] tells it, under
    /// the deployment's `key` for that. Clients whose address nobody told are one.
    #[must_use]
    pub fn of(address: Option<IpAddr>, namespace_id: &NamespaceId, key: &hmac::Key) -> Self {
        let mut hash = hmac::Context::with_key(key);
        let namespace_id = namespace_id.as_str().as_bytes();
        hash.update(&u64::try_from(namespace_id.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(namespace_id);
        match address.map(|address| address.to_canonical()) {
            None => hash.update(b"?"),
            Some(IpAddr::V4(address)) => {
                hash.update(b"4");
                hash.update(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                hash.update(b"6");
                hash.update(address.octets().get(..NETWORK_BYTES).unwrap_or_default());
            }
        }
        let hash = hash.sign();
        Self(URL_SAFE_NO_PAD.encode(hash.as_ref().get(..HASH_BYTES).unwrap_or_default()))
    }

    /// The hash as text, for keys of items.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A client of a namespace, which shares nothing of it with any other namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// Where it asks from.
    pub address: ClientAddress,
}

impl Client {
    /// The key of the item that knows of its `matter`.
    #[must_use]
    pub fn key(&self, matter: &str) -> String {
        format!("{matter}/{}/{}", self.namespace_id, self.address)
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(name: &str) -> NamespaceId {
        name.parse().unwrap()
    }

    fn of(address: &str, secret: u8) -> ClientAddress {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[secret; 32]);
        ClientAddress::of(Some(address.parse().unwrap()), &namespace("n"), &key)
    }

    #[test]
    fn a_client_is_another_one_in_each_namespace() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let in_namespace =
            |name: &str| ClientAddress::of(Some("192.0.2.1".parse().unwrap()), &namespace(name), &key);
        assert_eq!(in_namespace("n"), in_namespace("n"));
        assert_ne!(in_namespace("n"), in_namespace("m"), "I11");
    }

    #[test]
    fn an_ipv6_network_is_one_client_and_an_ipv4_address_another() {
        assert_eq!(of("2001:db8:0:1::1", 1), of("2001:db8:0:1:ffff::2", 1));
        assert_ne!(of("2001:db8:0:1::1", 1), of("2001:db8:0:2::1", 1));
        assert_ne!(of("192.0.2.1", 1), of("192.0.2.2", 1));
        assert_eq!(of("192.0.2.1", 1), of("::ffff:192.0.2.1", 1));
        // 1.2.3.4 and a network of the same first bytes.
        assert_ne!(of("1.2.3.4", 1), of("102:304::", 1));
    }

    #[test]
    fn the_hash_depends_on_the_key_and_shows_no_address() {
        let hash = of("192.0.2.1", 1);
        assert_ne!(hash, of("192.0.2.1", 2));
        assert_eq!(hash.as_str().len(), 22);
        assert!(!format!("{hash:?}").contains("192.0.2"));
    }

    #[test]
    fn clients_without_an_address_are_one() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let unknown = || ClientAddress::of(None, &namespace("n"), &key);
        assert_eq!(unknown(), unknown());
        assert_ne!(unknown(), of("0.0.0.0", 1));
    }
}

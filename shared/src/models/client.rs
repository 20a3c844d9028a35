//! Who the client of a request is: a keyed hash of its address, so that no table holds a readable address.
//!
//! A client with an IPv6 address usually has a whole /64 network, so IPv6 addresses count by /64. The hash
//! differs between namespaces, so that studios cannot recognise each other's players. A rotated signing key
//! changes all hashes, so the deployment forgets its clients.

use std::{fmt, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::models::ids::NamespaceId;

/// Bytes of a hash that are kept: with half of SHA-256, no two clients of a deployment share one.
const HASH_BYTES: usize = 16;
/// Bytes of an IPv6 address that name its network.
const NETWORK_BYTES: usize = 8;

/// Who a client is, within its namespace: 22 characters of unpadded URL-safe Base64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(String);

impl ClientId {
    /// The client of `namespace_id` at `address`, as [`crate::request::Request::client_ip`] returns it, under
    /// the deployment's `key`. All clients without an address are one.
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

/// A client of one namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// Which of its clients.
    pub client_id: ClientId,
}

impl Client {
    /// The key of its item for `matter`.
    #[must_use]
    pub fn key(&self, matter: &str) -> String {
        format!("{matter}/{}/{}", self.namespace_id, self.client_id)
    }
}

impl fmt::Display for ClientId {
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

    fn of(address: &str, secret: u8) -> ClientId {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[secret; 32]);
        ClientId::of(Some(address.parse().unwrap()), &namespace("n"), &key)
    }

    #[test]
    fn a_client_is_another_one_in_each_namespace() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let in_namespace =
            |name: &str| ClientId::of(Some("192.0.2.1".parse().unwrap()), &namespace(name), &key);
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
        let unknown = || ClientId::of(None, &namespace("n"), &key);
        assert_eq!(unknown(), unknown());
        assert_ne!(unknown(), of("0.0.0.0", 1));
    }
}

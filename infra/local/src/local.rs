//! Access to the routes under `/_local`, which exist only in the local stack and return its secrets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderValue, Request, StatusCode, request};
use serde_json::Value;

/// Answers a local-only route with JSON.
pub type LocalHandler =
    Arc<dyn Fn(Request<Bytes>) -> Pin<Box<dyn Future<Output = (StatusCode, Value)> + Send>> + Send + Sync>;

/// Whether a path is local-only: never routed to a function, and without CORS headers.
pub fn is_local(path: &str) -> bool {
    path.strip_prefix("/_local").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a request comes from this machine and is meant for it.
///
/// A page of any site can make a browser send requests here. Its own host name, resolved to a loopback
/// address, shows in `Host`; a request to the right host but from a foreign page shows in `Origin`.
pub fn may_use(request: &request::Parts, peer: SocketAddr) -> bool {
    let mut hosts = request.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    peer.ip().to_canonical().is_loopback()
        && host.to_str().is_ok_and(is_loopback)
        && request.uri.authority().is_none_or(|authority| is_loopback(authority.as_str()))
        && request.headers.get_all(ORIGIN).iter().all(is_loopback_origin)
}

fn is_loopback_origin(origin: &HeaderValue) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, authority)| is_loopback(authority))
}

fn is_loopback(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    !authority.as_str().contains('@')
        && (host.eq_ignore_ascii_case("localhost")
            || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || ipv6.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(peer: &str, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        may_use(&request.body(()).unwrap().into_parts().0, peer.parse().unwrap())
    }

    #[test]
    fn a_loopback_host_is_let_in_on_any_port() {
        for host in ["localhost", "LocalHost:3000", "127.0.0.1:3000", "127.8.9.1", "[::1]", "[::1]:80"] {
            assert!(may("127.0.0.1:9", "/_local/x", &[("host", host)]), "{host}");
        }
    }

    #[test]
    fn any_other_host_is_kept_out() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:3000",
            "localhost@evil.example",
            "evil@localhost",
            "[::2]",
            "0.0.0.0",
            "10.0.0.1",
            "0177.0.0.1",
            "",
        ] {
            assert!(!may("127.0.0.1:9", "/_local/x", &[("host", host)]), "{host}");
        }
        assert!(!may("127.0.0.1:9", "/_local/x", &[]));
        assert!(!may("127.0.0.1:9", "/_local/x", &[("host", "localhost"), ("host", "evil.example")]));
        assert!(!may("127.0.0.1:9", "http://evil.example/_local/x", &[("host", "localhost")]));
    }

    #[test]
    fn another_machine_and_a_foreign_page_are_kept_out() {
        let host = ("host", "localhost:3000");
        assert!(!may("192.0.2.7:9", "/_local/x", &[host]));
        assert!(may("[::ffff:127.0.0.1]:9", "/_local/x", &[host]));
        assert!(may("127.0.0.1:9", "/_local/x", &[host, ("origin", "http://localhost:8080")]));
        for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
            assert!(!may("127.0.0.1:9", "/_local/x", &[host, ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn local_paths_are_known_by_their_first_segment() {
        assert!(is_local("/_local") && is_local("/_local/tokens"));
        assert!(!is_local("/_locals") && !is_local("/x/_local") && !is_local("/"));
    }
}

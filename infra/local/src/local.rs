//! Access to the routes under `/_local`, which exist only in the local stack and return its secrets.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode, request};
use muster_console::guard::{is_for_this_machine, is_of_foreign_page};
use serde_json::Value;

/// Answers a local-only route with JSON.
pub type LocalHandler =
    Arc<dyn Fn(Request<Bytes>) -> Pin<Box<dyn Future<Output = (StatusCode, Value)> + Send>> + Send + Sync>;

/// Whether a path is local-only: never routed to a function, and without CORS headers.
pub fn is_local(path: &str) -> bool {
    path.strip_prefix("/_local").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a request comes from this machine, is meant for it, and is not a foreign page's.
pub fn may_use(request: &request::Parts, peer: SocketAddr) -> bool {
    is_for_this_machine(&request.headers, &request.uri, peer) && !is_of_foreign_page(&request.headers)
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
    fn another_machine_and_a_foreign_page_are_kept_out() {
        let host = ("host", "localhost:3000");
        assert!(!may("192.0.2.7:9", "/_local/x", &[host]));
        assert!(may("[::ffff:127.0.0.1]:9", "/_local/x", &[host]));
        assert!(may("127.0.0.1:9", "/_local/x", &[host, ("origin", "http://localhost:3000")]));
        assert!(!may("127.0.0.1:9", "/_local/x", &[host, ("sec-fetch-site", "cross-site")]));
        for origin in ["https://evil.example", "null", "http://localhost:8080"] {
            assert!(!may("127.0.0.1:9", "/_local/x", &[host, ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn local_paths_are_known_by_their_first_segment() {
        assert!(is_local("/_local") && is_local("/_local/tokens"));
        assert!(!is_local("/_locals") && !is_local("/x/_local") && !is_local("/"));
    }
}

//! The emulator's port, for programs that know its key: `muster --local`, and functions that run elsewhere on
//! this machine.
//!
//! It answers no page of a browser, and no name but its own. The key, made at each start, comes as the access
//! key of AWS's signature, and the signature itself is not verified.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use muster_console::guard::{is_host, is_loopback, is_meant_for, is_of_foreign_page, is_secret, protect};
use shared::base::ambient::Ambient;

use super::in_process::{InProcess, WireAnswer};

/// Largest request that DynamoDB accepts.
const BODY_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// The service behind the port.
#[derive(Clone)]
pub(super) struct Port {
    database: Arc<InProcess>,
    key: String,
    /// The names in URLs that lead to the port, besides those of loopback.
    names: Vec<String>,
}

impl Port {
    /// The port of `database` at `address`, which others may know as `name`, with a key of its own.
    pub(super) fn new(database: InProcess, address: SocketAddr, name: Option<&str>) -> Self {
        let bytes = Ambient::system().bytes::<16>();
        let key = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let names = [Some(in_url(address.ip())), name.map(str::to_owned)].into_iter().flatten().collect();
        Self { database: Arc::new(database), key, names }
    }

    /// The key that each request needs.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Answers a request, if it may be answered.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response {
        let (request, body) = request.into_parts();
        let answered = if self.lets_in(&request.headers, &request.uri) {
            match Limited::new(body, BODY_LIMIT_BYTES).collect().await {
                Ok(body) if request.method == Method::POST => {
                    Ok(self.database.answer(&operation(&request.headers), &body.to_bytes()))
                }
                Ok(_) => Err(StatusCode::METHOD_NOT_ALLOWED),
                Err(_) => Err(StatusCode::PAYLOAD_TOO_LARGE),
            }
        } else {
            Err(StatusCode::FORBIDDEN)
        };
        let (status, body) = match answered {
            Ok(WireAnswer { status, body }) => {
                (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
            }
            Err(status) => (status, String::new()),
        };
        let mut response = (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body).into_response();
        protect(response.headers_mut());
        response
    }

    fn lets_in(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let is_own = |host: &str| is_loopback(host) || self.names.iter().any(|name| is_host(host, name));
        is_meant_for(headers, uri, is_own)
            && !is_of_foreign_page(headers)
            && access_key(headers).is_some_and(|key| is_secret(&self.key, key))
    }
}

/// The access key of AWS's signature in `authorization`.
fn access_key(headers: &HeaderMap) -> Option<&str> {
    let signature = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (_, credential) = signature.split_once("Credential=")?;
    Some(credential.split_once('/')?.0)
}

/// The operation's name, after the dot in `x-amz-target`.
fn operation(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default().to_owned()
}

/// An address in a URL.
pub(crate) fn in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

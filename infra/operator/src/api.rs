//! The API of a deployment, over HTTP.

use std::sync::Arc;

use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::{
    dns::{DnsFuture, ResolveDns, ResolveDnsError},
    http::HttpConnector as _,
    orchestrator::HttpRequest,
};
use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, Response, body::Bytes, header::RETRY_AFTER};
use muster_console::host::Api;
use shared::base::aws::CRYPTOGRAPHY;

use crate::reach::root_cause;

/// Largest answer of the API: a list of lobbies with their states.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The address of one host, for all names.
#[derive(Clone, Debug)]
struct Host(String);

impl ResolveDns for Host {
    fn resolve_dns<'a>(&'a self, _: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move {
            let found = tokio::net::lookup_host((self.0.as_str(), 0)).await.map_err(ResolveDnsError::new)?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The API at `base`, by http or https.
pub(crate) fn api(base: String) -> Api {
    through(Connector::builder().tls_provider(CRYPTOGRAPHY).build(), base)
}

/// The API at `base`, at the address of `host` while DNS may lead its own host elsewhere.
pub(crate) fn api_at(base: String, host: String) -> Api {
    through(Connector::builder().tls_provider(CRYPTOGRAPHY).build_with_resolver(Host(host)), base)
}

fn through(connector: Connector, base: String) -> Api {
    let connector = Arc::new(connector);
    Arc::new(move |request: Request<Bytes>| {
        let (connector, base) = (Arc::clone(&connector), base.clone());
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let uri = format!("{}{}", base.trim_end_matches('/'), parts.uri);
            parts.uri =
                uri.parse().map_err(|_| "the stack has no output with the address of its API".to_owned())?;
            let request = HttpRequest::try_from(Request::from_parts(parts, body.into()));
            let answer = connector.call(request.map_err(|error| error.to_string())?).await;
            let answer = answer.map_err(|error| format!("{base} does not answer: {}", root_cause(&error)))?;
            let status = answer.status().as_u16();
            let retry_after = answer.headers().get("retry-after").map(ToOwned::to_owned);
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let response = Response::builder().status(status);
            let response = match retry_after {
                Some(seconds) => response.header(RETRY_AFTER, seconds),
                None => response,
            };
            response.body(body).map_err(|error| error.to_string())
        })
    })
}

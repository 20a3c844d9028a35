//! What the gateway does for players that a developer's machine does not.

use std::{
    net::SocketAddr,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{HeaderMap, Response, StatusCode};
use tokio::sync::watch;

use super::{gate::Gate, meters::Meters, proxies::Proxies};
use crate::observed::Observed;

/// Proxies, places and counts.
#[derive(Debug, Default)]
pub struct Service {
    /// The proxies that clients come through.
    pub proxies: Proxies,
    /// The places for requests.
    pub gate: Arc<Gate>,
    /// The counts.
    pub meters: Meters,
    /// Whether the log has said that a proxy is missing.
    has_warned: AtomicBool,
    /// Whether requests under way have waited long enough.
    cut: watch::Sender<bool>,
}

impl Service {
    /// A service behind `proxies`.
    #[must_use]
    pub fn behind(proxies: Proxies) -> Self {
        Self { proxies, ..Self::default() }
    }

    /// The address of a request's client, with the port of whoever sent it here.
    pub fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        if self.proxies.misses(peer.ip(), headers) && !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "{peer} sends X-Forwarded-For and is no named proxy: if it is one of yours, all players behind it \
                 count as one address until you start with --proxy {}",
                peer.ip().to_canonical()
            );
        }
        (self.proxies.client(peer.ip(), headers), peer.port()).into()
    }

    /// Has the requests that are still under way answered at once: their clients are to come again.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Returns once [`Self::cut`] was called.
    pub async fn until_cut(&self) {
        let mut cut = self.cut.subscribe();
        let _sender_is_self = cut.wait_for(|cut| *cut).await;
    }

    /// Counts a request.
    pub fn note(
        &self,
        operation: Option<&str>,
        answered: Result<&Response<lambda_http::Body>, StatusCode>,
        took: Duration,
    ) {
        let status = answered.map_or_else(|status| status, Response::status).as_u16();
        let usage = answered.ok().and_then(|response| response.extensions().get::<Observed>());
        self.meters.note(operation, status, took, usage.map(|observed| observed.usage).unwrap_or_default());
    }
}

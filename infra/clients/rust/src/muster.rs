//! The matchmaker of one namespace, for players.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    api::{
        CreateLobbyRequest, FindLobbyRequest, JoinLobbyRequest, ListLobbiesQuery, ListLobbiesResponse,
        ListRegionsResponse, RegionInfo,
    },
    error::Error,
    http::{Call, DEADLINE, LONG_ATTEMPT, World, send},
    intent::{seat_call, take},
    seat::Seat,
};

/// How long a probe may take: later, the region counts as unreachable.
const PROBE: Duration = Duration::from_secs(1);

/// The matchmaker of one namespace. Clones share everything.
#[derive(Clone)]
pub struct Muster {
    service: Arc<Service>,
    background: TaskTracker,
}

#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) world: World,
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) deadline: Duration,
    http: reqwest::Client,
}

/// The HTTP client that is used without one of the application's: TLS by `ring`, unless the application has
/// chosen a provider before. Where the system has no certificates, such as in a bare container, it trusts
/// none.
#[must_use]
pub fn http_client() -> reqwest::Client {
    // An error says that the application has chosen a provider of its own.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let trusting_none = |_| reqwest::Client::builder().tls_certs_only([]).build().unwrap_or_default();
    reqwest::Client::builder().build().unwrap_or_else(trusting_none)
}

impl Muster {
    /// The matchmaker at the API's address, such as `http://127.0.0.1:3000`, with the namespace's public
    /// token.
    #[must_use]
    pub fn new(url: &str, token: &str) -> Self {
        Self::with_http(url, token, http_client())
    }

    /// The same over an HTTP client of the application's.
    #[must_use]
    pub fn with_http(url: &str, token: &str, http: reqwest::Client) -> Self {
        let world: World = Arc::new(http.clone());
        let (url, token) = (url.trim_end_matches('/').to_owned(), Some(token.to_owned()));
        let service = Arc::new(Service { world, url, token, deadline: DEADLINE, http });
        // Closed, it takes tasks all the same, and tells when there are none.
        let background = TaskTracker::new();
        background.close();
        Self { service, background }
    }

    /// The same, whose calls take at most so long, retries included; a minute without it.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        Arc::make_mut(&mut self.service).deadline = deadline;
        self
    }

    #[cfg(test)]
    pub(crate) fn over(world: World) -> Self {
        let mut muster = Self::new("http://muster.test", "public");
        Arc::make_mut(&mut muster.service).world = world;
        muster
    }

    /// Finds a seat, in a lobby that fits or a new one.
    ///
    /// # Errors
    /// [`Error`], where the seat is refused or the deadline passes.
    pub async fn find(&self, request: &FindLobbyRequest) -> Result<Seat, Error> {
        self.take("find", request).await
    }

    /// Takes a seat in a lobby, by its identifier or its code.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn join(&self, request: &JoinLobbyRequest) -> Result<Seat, Error> {
        self.take("join", request).await
    }

    /// Creates a lobby, private by default, and takes its first seat.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn create(&self, request: &CreateLobbyRequest) -> Result<Seat, Error> {
        self.take("create", request).await
    }

    /// Public lobbies that are open, a page of them.
    ///
    /// # Errors
    /// [`Error`], where the list is refused or the deadline passes.
    pub async fn list(&self, query: &ListLobbiesQuery) -> Result<ListLobbiesResponse, Error> {
        let ListLobbiesQuery { include_state, limit, cursor } = query;
        let given = [
            include_state.then(|| "include_state=true".to_owned()),
            limit.map(|limit| format!("limit={limit}")),
            // A cursor has only characters that need no escapes.
            cursor.as_ref().map(|cursor| format!("cursor={cursor}")),
        ];
        let query: Vec<_> = given.into_iter().flatten().collect();
        self.get(&format!("lobbies/list?{}", query.join("&"))).await
    }

    /// The game's regions, the nearest first.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        let ListRegionsResponse { regions } = self.get("regions").await?;
        Ok(regions)
    }

    /// Measures what [`FindLobbyRequest::latencies`] takes, in milliseconds: `None` for a region that did not
    /// respond in time. Regions without a probe are left out.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn measure_latencies(&self) -> Result<BTreeMap<String, Option<f64>>, Error> {
        let probed =
            self.regions().await?.into_iter().filter_map(|region| Some((region.region_id, region.probe?)));
        let measured =
            join_all(probed.map(|(region_id, probe)| async move { (region_id, self.measure(&probe).await) }));
        Ok(measured.await.into_iter().collect())
    }

    /// The seat of a token that somebody handed over, or that the application kept over a restart.
    ///
    /// # Errors
    /// [`Error`], where the seat is gone, or the deadline passes.
    pub async fn seat(&self, token: &str) -> Result<Seat, Error> {
        let Service { world, url, deadline, .. } = &*self.service;
        let answer = send(world, &seat_call(url, "rejoin", token)?, *deadline).await?;
        Ok(Seat::new(&self.service, answer))
    }

    /// Returns when nothing goes on in the background: seats of intents that were given up are left. Call it
    /// before the runtime ends, when no other call is under way.
    pub async fn settled(&self) {
        self.background.wait().await;
    }

    async fn take(&self, operation: &str, request: &impl Serialize) -> Result<Seat, Error> {
        let Service { world, url, token, deadline, .. } = &*self.service;
        let call = Call::send(Method::POST, format!("{url}/matchmaker/lobbies/{operation}"), request)?;
        let key = Some(Uuid::new_v4().simple().to_string());
        let call = Call { token: token.clone(), key, attempt: LONG_ATTEMPT, ..call };
        let answer = take(world, url, call, *deadline, &self.background).await?;
        Ok(Seat::new(&self.service, answer))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let Service { world, url, token, deadline, .. } = &*self.service;
        send(world, &Call::get(format!("{url}/matchmaker/{path}"), token.clone()), *deadline).await
    }

    /// The time of a request on a connection that is open. Servers of WebSockets respond to one, too.
    async fn measure(&self, probe: &str) -> Option<f64> {
        let url = probe.strip_prefix("ws").map_or_else(|| probe.to_owned(), |rest| format!("http{rest}"));
        let ask = async || {
            let response = self.service.http.get(&url).timeout(PROBE).send().await.ok()?;
            response.bytes().await.ok()
        };
        // The first pays for name, connection and TLS, which play does not.
        timeout(2 * PROBE, async {
            ask().await?;
            let began = Instant::now();
            ask().await?;
            Some((began.elapsed().as_secs_f64() * 1_000.0).max(1.0))
        })
        .await
        .ok()?
    }
}

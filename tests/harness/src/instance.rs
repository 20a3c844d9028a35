//! One function instance of find, as Lambda runs many: its own client, memory and meter, nothing shared but
//! the tables.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_sdk_dynamodb::Client;
use find_lobby::FindLobby;
use muster_local::{emulator::link::patient, stack::table_names};
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    base::{ambient::Ambient, usage::Usage},
    function::{
        instance,
        metrics::{Counts, Metric},
        operation::{Operation as _, answer_counted},
    },
    models::{errors::Error, pool::Pool},
    outside::endpoints::Outside,
    request::Request,
    store::{
        client::{Store, emulator_client},
        meter::Meter,
    },
    wire::FindLobbyResponse,
};

use crate::prices::Cost;

/// The identifier of each request, in the form of the gateway's.
pub const REQUEST_ID: &str = "JKJaXmPLvHcESHA=";

/// A client of the emulator at `endpoint` that waits for each answer, however long a busy machine takes.
#[must_use]
pub fn patient_client(endpoint: &str) -> Client {
    patient(&emulator_client(endpoint))
}

/// An isolated instance.
#[derive(Debug)]
pub struct Instance {
    find_lobby: FindLobby,
    store: Store,
    meter: Meter,
    ambient: Ambient,
    race_creates: AtomicU64,
}

impl Instance {
    /// An instance that remembers nothing yet, on the database at `endpoint`.
    #[must_use]
    pub fn new(endpoint: &str, keys: &Arc<TokenKeys>, ambient: &Ambient) -> Self {
        Self::over(patient_client(endpoint), keys, ambient)
    }

    /// An instance that remembers nothing yet, on the database behind `client`.
    #[must_use]
    pub fn over(client: Client, keys: &Arc<TokenKeys>, ambient: &Ambient) -> Self {
        Self::among(Outside::default(), client, keys, ambient)
    }

    /// An instance with the captcha providers and backends `outside`.
    #[must_use]
    pub fn among(outside: Outside, client: Client, keys: &Arc<TokenKeys>, ambient: &Ambient) -> Self {
        let meter = Meter::on();
        let store = Store::new(client, table_names()).metered(meter.clone());
        let parts = instance::Instance::over(store.clone(), Arc::clone(keys), ambient.clone());
        let find_lobby = FindLobby::start(&parts.with_outside(outside)).expect("an operation");
        Self { find_lobby, store, meter, ambient: ambient.clone(), race_creates: AtomicU64::new(0) }
    }

    /// The instance's store.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The instance's usage of the database so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.meter.usage()
    }

    /// Lobbies that the instance created although another was joinable.
    #[must_use]
    pub fn race_creates(&self) -> u64 {
        self.race_creates.load(Ordering::Relaxed)
    }

    /// Runs one request, made by [`request`] for this call alone.
    ///
    /// # Errors
    /// As the operation.
    pub async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        let answer = self.find_lobby.call(request).await;
        let counts = Counts::of(request.trace(), answer.as_ref().err());
        self.race_creates.fetch_add(counts.get(Metric::RaceCreate), Ordering::Relaxed);
        answer
    }

    /// Answers an event as a function does, and what the request counts.
    pub async fn answer(&self, event: lambda_http::Request) -> (u16, Counts) {
        let (response, counts) = answer_counted(&self.find_lobby, event, &self.ambient, None).await;
        (response.status().as_u16(), counts)
    }

    /// Answers an event as a function does: its status, and its cost.
    pub async fn cost(&self, event: lambda_http::Request) -> (u16, Cost) {
        let before = self.usage();
        let (response, _) = answer_counted(&self.find_lobby, event, &self.ambient, None).await;
        (response.status().as_u16(), Cost::of(self.usage() - before, response.body().len()))
    }

    /// Finds a lobby.
    ///
    /// # Errors
    /// As the operation.
    pub async fn find(&self, token: &str, body: &Value) -> Result<FindLobbyResponse, Error> {
        self.call(&request(&[("authorization", &format!("Bearer {token}"))], body)).await
    }

    /// Makes the instance warm without a lobby: settings read, servers known, connection open.
    ///
    /// # Panics
    /// When the database fails.
    pub async fn warm_up(&self, token: &str, pool: &Pool) {
        self.find_lobby.matchmaker().know_servers(pool).await.expect("servers");
        let prevented = json!({ "game_modes": [pool.game_mode], "prevent_auto_create_lobby": true });
        let refused = self.find(token, &prevented).await;
        assert!(refused.is_err(), "nothing is there yet");
    }
}

/// A find as API Gateway would hand it to the function.
///
/// # Panics
/// When the headers are none.
#[must_use]
pub fn request(headers: &[(&str, &str)], body: &Value) -> Request {
    event(headers, body, &[]).into()
}

/// The event of a request with path parameters, if any. Its path is that of find; no operation reads it.
///
/// # Panics
/// When the headers are none.
#[must_use]
pub fn event(headers: &[(&str, &str)], body: &Value, parameters: &[(&str, &str)]) -> lambda_http::Request {
    event_from(Ipv4Addr::LOCALHOST, headers, body, parameters)
}

/// The same from a client's address.
///
/// # Panics
/// When the headers are none.
#[must_use]
pub fn event_from(
    address: Ipv4Addr,
    headers: &[(&str, &str)],
    body: &Value,
    parameters: &[(&str, &str)],
) -> lambda_http::Request {
    event_with(address, headers, body, parameters, &[])
}

/// The event of a request without a body, with query parameters, which need no encoding.
///
/// # Panics
/// When the headers are none.
#[must_use]
pub fn query_event(headers: &[(&str, &str)], query: &[(&str, &str)]) -> lambda_http::Request {
    event_with(Ipv4Addr::LOCALHOST, headers, &json!({}), &[], query)
}

fn event_with(
    address: Ipv4Addr,
    headers: &[(&str, &str)],
    body: &Value,
    parameters: &[(&str, &str)],
    query: &[(&str, &str)],
) -> lambda_http::Request {
    let headers: serde_json::Map<_, _> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let path = "/matchmaker/lobbies/find";
    let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let event = json!({
        "version": "2.0",
        "routeKey": format!("POST {path}"),
        "rawPath": path,
        "rawQueryString": query.join("&"),
        "headers": headers,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "test",
            "domainName": "localhost",
            "domainPrefix": "localhost",
            "http": {
                "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": address,
                "userAgent": "test",
            },
            "requestId": REQUEST_ID,
            "routeKey": format!("POST {path}"),
            "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000_u64,
        },
        "pathParameters": parameters.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        "body": body.to_string(),
        "isBase64Encoded": false,
    });
    lambda_http::request::from_str(&event.to_string()).expect("a gateway event")
}

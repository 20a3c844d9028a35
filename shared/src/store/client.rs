//! The client of DynamoDB and the tables that it works on.

use std::{fmt, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig, timeout::TimeoutConfig},
    types::AttributeValue,
};
use aws_smithy_runtime_api::client::http::{HttpClient, SharedHttpClient};

use crate::{
    base::aws,
    models::errors::Error,
    store::{
        conflicts::RetryConflicts,
        failures::failure,
        items::{Item, Record, from_item},
        meter::Meter,
    },
};

/// The tables' names in this deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableNames {
    /// Games, namespaces, versions, domains.
    pub catalog: String,
    /// Cloud tokens, by digest.
    pub tokens: String,
    /// Lobbies with their seats.
    pub lobbies: String,
    /// Lobbies' tags, states and configurations.
    pub lobby_data: String,
    /// Game servers.
    pub servers: String,
    /// Counts and elections: the allotted part of a namespace's limit, heads of bursts, searches without
    /// result, the last count of players.
    pub ledger: String,
    /// Secrets of versions.
    pub secrets: String,
    /// Clients' data that expires: captchas passed, seats held, responses for retried requests.
    pub clients: String,
}

/// The DynamoDB store.
#[derive(Clone)]
pub struct Store {
    pub(super) client: Client,
    pub(super) tables: TableNames,
    pub(super) meter: Meter,
}

impl Store {
    /// A store over `client`.
    #[must_use]
    pub fn new(client: Client, tables: TableNames) -> Self {
        Self { client, tables, meter: Meter::off() }
    }

    /// This store, counting its calls and units in `meter`.
    #[must_use]
    pub fn metered(&self, meter: Meter) -> Self {
        Self { meter, ..self.clone() }
    }

    /// This store through another client of the same database.
    #[must_use]
    pub fn with_client(&self, client: Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// The client itself, for benchmarks that compare with a raw call.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The tables' names.
    #[must_use]
    pub const fn tables(&self) -> &TableNames {
        &self.tables
    }

    /// Reads the item of `key`: one read unit for each started 4 KB if as it now is, else half of one.
    pub(super) async fn read<T: Record>(
        &self,
        table: &str,
        key: Item,
        is_consistent: bool,
    ) -> Result<Option<T>, Error> {
        let answer = self
            .client
            .get_item()
            .table_name(table)
            .set_key(Some(key))
            .set_consistent_read(is_consistent.then_some(true))
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        answer.item.map(from_item).transpose()
    }

    /// Opens the connection that the first request will use, by reading a missing item.
    ///
    /// A TLS handshake takes most of a second at 128 MB, which init can afford and a player cannot.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]: the first request would report the same.
    pub async fn open_connection(&self) -> Result<(), Error> {
        let key = || AttributeValue::S("warm-up".to_owned());
        // Every function with a store may read the catalogue.
        let request =
            self.client.get_item().table_name(&self.tables.catalog).key("pk", key()).key("sk", key());
        request.send().await.map(|_nothing| ()).map_err(|error| failure(&error))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// One attempt at a call: DynamoDB responds in milliseconds, so a silent second is a lost packet.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(900);
const ATTEMPTS: u32 = 4;
const RETRY_BACKOFF: Duration = Duration::from_millis(25);

/// Bounded attempts, so that an operation ends within its deadline.
pub(super) fn retries(backoff: Duration) -> RetryConfig {
    RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(backoff)
}

/// The settings that every client shares.
fn client_settings(region: String) -> aws_sdk_dynamodb::config::Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region))
        .retry_config(retries(RETRY_BACKOFF))
        .retry_classifier(RetryConflicts)
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .build(),
        )
}

/// A client of AWS in `region` by `http`, at `endpoint` instead of the region's own if there is one.
#[must_use]
pub fn aws_client(
    region: String,
    credentials: Credentials,
    endpoint: Option<String>,
    http: SharedHttpClient,
) -> Client {
    let mut settings = client_settings(region).credentials_provider(credentials).http_client(http);
    settings.set_endpoint_url(endpoint);
    Client::from_conf(settings.build())
}

/// A client of an emulator at `endpoint`, `http://host:port` or `http://key@host:port` with the access key
/// that it demands, over plain HTTP: no trust store is loaded.
#[must_use]
pub fn emulator_client(endpoint: &str) -> Client {
    emulator_client_over(endpoint, aws::plain_client())
}

/// A client of an emulator at `endpoint` that sends through `http`, which may work without a network.
#[must_use]
pub fn emulator_client_over(endpoint: &str, http: impl HttpClient + 'static) -> Client {
    let keyed = endpoint.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)));
    let (key, endpoint) = match keyed {
        Some((scheme, (key, address))) => (key, format!("{scheme}://{address}")),
        None => ("local", endpoint.to_owned()),
    };
    let credentials = Credentials::new(key, "local", None, None, "emulator");
    let settings = client_settings("us-east-1".to_owned())
        .endpoint_url(endpoint)
        .credentials_provider(credentials)
        .http_client(http);
    Client::from_conf(settings.build())
}

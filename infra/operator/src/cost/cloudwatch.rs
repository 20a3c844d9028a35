//! The calls of CloudWatch that `muster cost` and `muster console` make, of its metrics and of its logs, in
//! its JSON protocol.
//!
//! Its own clients would bring many crates, and features that would have `cargo run` and `cargo test` build
//! the AWS SDK twice. A refused call is not repeated: its reason is shown.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::ProvideCredentials as _;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::{
    http::{HttpConnector as _, SharedHttpConnector},
    orchestrator::HttpRequest,
};
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::{
    base::{ambient::Timestamp, aws::CRYPTOGRAPHY},
    outside::aws_api::{Service, endpoint, signed},
};

/// Queries that CloudWatch takes at once.
const QUERIES_MAX: usize = 500;
/// Alarms that it describes at once, by name.
const ALARMS_MAX: usize = 100;
/// Largest answer: 100,800 values with their times.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const METRICS: Service = Service {
    name: "monitoring",
    prefix: "GraniteServiceVersion20100801",
    content_type: "application/x-amz-json-1.0",
};
const LOGS: Service =
    Service { name: "logs", prefix: "Logs_20140328", content_type: "application/x-amz-json-1.1" };
/// How often a query of the logs is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks until it counts as hanging.
const LOOKS_MAX: usize = 60;
/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A metric: its namespace, name and dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metric {
    pub namespace: String,
    pub name: &'static str,
    pub dimensions: Vec<(&'static str, String)>,
}

/// CloudWatch in one region, at one time.
pub(super) struct CloudWatch<'a> {
    config: &'a SdkConfig,
    now: Timestamp,
    connector: SharedHttpConnector,
    metrics: AtomicUsize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MetricDataRequest {
    metric_data_queries: Vec<Value>,
    start_time: u64,
    end_time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    metric_data_results: Vec<Values>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Values {
    id: String,
    /// Seconds since the epoch.
    #[serde(default)]
    timestamps: Vec<f64>,
    #[serde(default)]
    values: Vec<f64>,
    status_code: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Alarms {
    #[serde(default)]
    metric_alarms: Vec<Alarm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Alarm {
    #[serde(default)]
    metrics: Vec<Value>,
}

/// A query of the logs that has begun.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Begun {
    query_id: String,
}

#[derive(Deserialize)]
struct Results {
    status: String,
    #[serde(default)]
    results: Vec<Vec<Field>>,
}

#[derive(Deserialize)]
struct Field {
    field: String,
    #[serde(default)]
    value: String,
}

/// Why a call is refused.
#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "__type")]
    code: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl<'a> CloudWatch<'a> {
    pub fn new(config: &'a SdkConfig, now: Timestamp) -> Self {
        let connector = Connector::builder().tls_provider(CRYPTOGRAPHY).build();
        Self { config, now, connector: SharedHttpConnector::new(connector), metrics: AtomicUsize::new(0) }
    }

    /// The requested metrics, each of which costs.
    pub fn metrics(&self) -> usize {
        self.metrics.load(Ordering::Relaxed)
    }

    /// The sums of each metric in each `period` since then that has any.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub async fn sums(
        &self,
        metrics: &[Metric],
        since: Timestamp,
        period: Duration,
    ) -> Result<Vec<Vec<f64>>, String> {
        let series = self.series(metrics, since, period).await?.into_iter();
        Ok(series.map(|sums| sums.into_iter().map(|(_, sum)| sum).collect()).collect())
    }

    /// The same, each with the beginning of its period, in no order.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub async fn series(
        &self,
        metrics: &[Metric],
        since: Timestamp,
        period: Duration,
    ) -> Result<Vec<Vec<(Timestamp, f64)>>, String> {
        let mut sums = Vec::new();
        self.metrics.fetch_add(metrics.len(), Ordering::Relaxed);
        for metrics in metrics.chunks(QUERIES_MAX) {
            let mut found = vec![Vec::new(); metrics.len()];
            let mut request = MetricDataRequest {
                metric_data_queries: (0..)
                    .zip(metrics)
                    .map(|(place, metric)| metric.query(place, period))
                    .collect(),
                start_time: since.secs(),
                // What was counted in this very second, too.
                end_time: self.now.secs() + 1,
                next_token: None,
            };
            loop {
                let Page { metric_data_results, next_token } =
                    self.call(&METRICS, "GetMetricData", &request).await?;
                for Values { id, timestamps, values, status_code } in metric_data_results {
                    if let Some(code @ ("Forbidden" | "InternalError")) = status_code.as_deref() {
                        return Err(format!("CloudWatch says {code}"));
                    }
                    let place = id.strip_prefix('m').and_then(|place| place.parse::<usize>().ok());
                    if let Some(found) = place.and_then(|place| found.get_mut(place)) {
                        let at = timestamps.into_iter().map(|secs| Timestamp((secs * 1e3) as u64));
                        found.extend(at.zip(values));
                    }
                }
                request.next_token = next_token;
                if request.next_token.is_none() {
                    break;
                }
            }
            sums.append(&mut found);
        }
        Ok(sums)
    }

    /// How many metrics the alarms of these names watch.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub async fn watched(&self, alarms: &[&str]) -> Result<usize, String> {
        let mut watched = 0;
        for names in alarms.chunks(ALARMS_MAX) {
            let request = json!({ "AlarmNames": names, "MaxRecords": ALARMS_MAX });
            let Alarms { metric_alarms } = self.call(&METRICS, "DescribeAlarms", &request).await?;
            for Alarm { metrics } in metric_alarms {
                // An alarm without an expression names its only metric elsewhere.
                watched += metrics.iter().filter(|metric| metric.get("MetricStat").is_some()).count().max(1);
            }
        }
        Ok(watched)
    }

    /// The rows that a query of a group's logs since then finds, each by the names of its fields. It costs by
    /// the bytes that it scans.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn query(
        &self,
        group: &str,
        query: &str,
        since: Timestamp,
    ) -> Result<Vec<BTreeMap<String, String>>, String> {
        let request = json!({ "logGroupName": group, "queryString": query,
                              "startTime": since.secs(), "endTime": self.now.secs() });
        let begun: Begun = self.call(&LOGS, "StartQuery", &request).await?;
        for _ in 0..LOOKS_MAX {
            let Results { status, results } = self.call(&LOGS, "GetQueryResults", &begun).await?;
            match status.as_str() {
                "Complete" => {
                    let row =
                        |row: Vec<Field>| row.into_iter().map(|field| (field.field, field.value)).collect();
                    return Ok(results.into_iter().map(row).collect());
                }
                "Scheduled" | "Running" => tokio::time::sleep(LOOK_EVERY).await,
                status => return Err(format!("CloudWatch Logs says {status}")),
            }
        }
        Err("CloudWatch Logs does not answer in time".to_owned())
    }

    async fn call<T: for<'de> Deserialize<'de>>(
        &self,
        service: &Service,
        operation: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<T, String> {
        let body = serde_json::to_string(request).map_err(|error| error.to_string())?;
        let request = self.signed(service, operation, body).await?;
        let answered = async {
            let answer = self.connector.call(request).await.map_err(|error| error.to_string())?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok::<_, String>((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        let in_time = tokio::time::timeout(TIMEOUT, answered).await;
        let (status, body) = in_time.map_err(|_| "CloudWatch does not answer in time".to_owned())??;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| error.to_string());
        }
        let refusal: Result<Refusal, _> = serde_json::from_slice(&body);
        let Refusal { code, message } =
            refusal.map_err(|_| format!("CloudWatch answers with status {}", status.as_u16()))?;
        Err(format!("{}: {message}", code.rsplit('#').next().unwrap_or_default()))
    }

    async fn signed(&self, service: &Service, operation: &str, body: String) -> Result<HttpRequest, String> {
        let provider = self.config.credentials_provider().ok_or("there are no credentials")?;
        let credentials = provider.provide_credentials().await.map_err(|error| error.to_string())?;
        let region = self.config.region().ok_or("there is no region: give --aws-region")?.as_ref();
        let uri =
            self.config.endpoint_url().map_or_else(|| endpoint(service.name, region), ToOwned::to_owned);
        signed((service, operation), (region, &uri), credentials, &body, self.now)
    }
}

impl Metric {
    fn query(&self, place: usize, period: Duration) -> Value {
        let Self { namespace, name, dimensions } = self;
        let dimensions: Vec<_> =
            dimensions.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect();
        let metric = json!({ "Namespace": namespace, "MetricName": name, "Dimensions": dimensions });
        json!({ "Id": format!("m{place}"),
                "MetricStat": { "Metric": metric, "Period": period.as_secs(), "Stat": "Sum" } })
    }
}

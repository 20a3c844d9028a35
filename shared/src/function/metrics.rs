//! Metrics for alarms and dashboards: one line of CloudWatch's embedded metric format (EMF) in the log for
//! each request that counts anything, which costs no call.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value, json};
use strum::VariantArray as _;

use crate::{
    base::ambient::Timestamp,
    function::config::Environment,
    models::errors::Error,
    request::trace::{Outline, Trace},
    wire::explanation::FindOutcome,
};

/// A metric; its dimension is the operation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum Metric {
    /// A player got a seat in an existing lobby.
    LobbyFound,
    /// A player got a seat in a lobby created for it.
    LobbyCreated,
    /// A find created a lobby although another one had a free seat (I9).
    RaceCreate,
    /// Another request took a seat first, or a find lost every race.
    SeatContention,
    /// No game server had a place for a lobby.
    NoServerAvailable,
    /// A request read a game server with places whose heartbeats stopped.
    ServerSilent,
    /// The namespace is at its limit of lobbies.
    TooManyLobbies,
    /// The client's IP address holds its limit of seats.
    TooManyPlayersFromSource,
    /// A provider refused a captcha response.
    CaptchaRejected,
    /// A captcha provider did not respond.
    CaptchaUnavailable,
    /// A token or an origin was refused.
    AuthRefused,
    /// The operation failed by no fault of the client: because of its tables or a defect.
    OperationFailed,
    /// Seconds that game servers on demand ran, whose processes have ended.
    ServerSeconds,
    /// The request was the first of its instance.
    ColdStart,
}

impl Metric {
    /// Every metric.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name in CloudWatch.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is also counted without a dimension: the total of all operations, which an alarm watches
    /// for the price of one metric.
    #[must_use]
    pub const fn has_total(self) -> bool {
        matches!(self, Self::AuthRefused | Self::OperationFailed)
    }

    /// The metric of a refusal, if any.
    const fn of_refusal(error: &Error) -> Option<Self> {
        Some(match error {
            Error::NoServerAvailable(_) => Self::NoServerAvailable,
            Error::TooManyLobbies => Self::TooManyLobbies,
            Error::TooManyPlayersFromSource { .. } | Error::TooManyStartsFromSource { .. } => {
                Self::TooManyPlayersFromSource
            }
            Error::Contention => Self::SeatContention,
            Error::CaptchaFailed => Self::CaptchaRejected,
            Error::CaptchaUnavailable(_) => Self::CaptchaUnavailable,
            Error::Unauthorized
            | Error::TokenInvalid(_)
            | Error::TokenExpired
            | Error::TokenRevoked
            | Error::WrongTokenKind { .. }
            | Error::Forbidden
            | Error::NotThroughEdge => Self::AuthRefused,
            Error::Unavailable(_) | Error::Bug(_) => Self::OperationFailed,
            _ => return None,
        })
    }
}

/// The counts of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Metric, u64>);

impl Counts {
    /// The counts of a request with this `trace` that ended with `refusal`, if any.
    #[must_use]
    pub fn of(trace: &Trace, refusal: Option<&Error>) -> Self {
        let mut counts = Self::default();
        let Outline { outcome, races_lost, silent_servers } = trace.outline();
        match outcome.filter(|_| refusal.is_none()) {
            Some(FindOutcome::Joined) => counts.add(Metric::LobbyFound, 1),
            Some(FindOutcome::Created { is_race_create }) => {
                counts.add(Metric::LobbyCreated, 1);
                counts.add(Metric::RaceCreate, is_race_create.into());
            }
            None => {}
        }
        counts.add(Metric::SeatContention, races_lost);
        counts.add(Metric::ServerSilent, silent_servers);
        if let Some(metric) = refusal.and_then(Metric::of_refusal) {
            counts.add(metric, 1);
        }
        counts
    }

    /// The count of `metric`.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.0.get(&metric).copied().unwrap_or(0)
    }

    /// These, and so many of `metric`.
    #[must_use]
    pub fn with(mut self, metric: Metric, count: u64) -> Self {
        self.add(metric, count);
        self
    }

    fn add(&mut self, metric: Metric, count: u64) {
        if count > 0 {
            *self.0.entry(metric).or_default() += count;
        }
    }
}

/// Writes the counts of one function instance's requests.
#[derive(Debug)]
pub struct Counter {
    /// The metrics' namespace in CloudWatch.
    namespace: String,
    has_served: AtomicBool,
}

impl Counter {
    /// The counter for the metrics' namespace in `MUSTER_METRICS_NAMESPACE`; `None` without that variable.
    #[must_use]
    pub fn of(environment: &Environment) -> Option<Self> {
        let namespace = environment.optional("MUSTER_METRICS_NAMESPACE")?;
        Some(Self { namespace, has_served: AtomicBool::new(false) })
    }

    /// The line of embedded metric format for a request of `operation` that ended at `now`; `None` when it
    /// counts nothing.
    #[must_use]
    pub fn line(&self, operation: &str, mut counts: Counts, now: Timestamp) -> Option<String> {
        counts.add(Metric::ColdStart, (!self.has_served.swap(true, Ordering::Relaxed)).into());
        if counts.0.is_empty() {
            return None;
        }
        let directive = |has_total: bool, dimensions: Value| {
            let metrics = counts.0.keys().filter(|metric| metric.has_total() == has_total);
            let metrics: Vec<_> =
                metrics.map(|metric| json!({ "Name": metric.name(), "Unit": "Count" })).collect();
            (!metrics.is_empty())
                .then(|| json!({ "Namespace": self.namespace, "Dimensions": dimensions, "Metrics": metrics }))
        };
        let directives: Vec<_> =
            [directive(false, json!([["operation"]])), directive(true, json!([["operation"], []]))]
                .into_iter()
                .flatten()
                .collect();
        let mut line = Map::from_iter([
            ("_aws".to_owned(), json!({ "Timestamp": now, "CloudWatchMetrics": directives })),
            ("operation".to_owned(), operation.into()),
        ]);
        line.extend(counts.0.into_iter().map(|(metric, count)| (metric.name().to_owned(), count.into())));
        Some(Value::Object(line).to_string())
    }
}

//! The interface between a host and the console.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use serde::Serialize;
use serde_json::Value;
use shared::{
    auth::keys::TokenKeys,
    base::ambient::{Ambient, Timestamp},
    models::errors::Error,
    store::client::Store,
};

use crate::{
    guard::Guard,
    tape::{Finds, Tape},
};

/// A future of a host's.
pub type Coming<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Sends a request to the deployment's API, by its path. `Err` says why there is no response.
pub type Api = Arc<dyn Fn(Request<Bytes>) -> Coming<Result<Response<Bytes>, String>> + Send + Sync>;
/// Runs one of the operator's commands.
pub type Commands = Arc<dyn Fn(Words) -> Coming<Result<Value, Refusal>> + Send + Sync>;
/// Reads the keys that the deployment signs tokens with. `Err` says why it cannot.
pub type Keys = Arc<dyn Fn() -> Coming<Result<Arc<TokenKeys>, String>> + Send + Sync>;

/// Finds by the beginning of their minute.
pub type FindsByMinute = BTreeMap<Timestamp, Finds>;

/// The counts that AWS keeps of a deployment, which cost money to read.
#[derive(Clone)]
pub struct AwsCounts {
    /// Reads the finds of each minute since a time, of all namespaces.
    pub finds: Arc<dyn Fn(Timestamp) -> Coming<Counted<FindsByMinute>> + Send + Sync>,
    /// Reads how many bytes its functions have logged since a time: a query of their logs scans these.
    pub log_bytes: Arc<dyn Fn(Timestamp) -> Coming<Counted<f64>> + Send + Sync>,
    /// Searches these logs for refusals, at a cost per byte scanned. `Err` says why it cannot.
    pub refusals: Refusals,
    /// Reads what this month has cost so far, as `muster cost --json` prints it.
    pub bill: Arc<dyn Fn() -> Coming<Counted<Value>> + Send + Sync>,
}

/// Refusals of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusalCount {
    /// The operation.
    pub operation: String,
    /// The code of the error.
    pub code: String,
    /// How many there were.
    pub requests: u64,
    /// The identifiers of the first and the last request.
    pub examples: Vec<String>,
}

/// What was read of AWS's counts.
#[derive(Clone, Debug)]
pub struct Counted<T> {
    /// The counts; why they cannot be read, in words.
    pub counts: Result<T, String>,
    /// The requested metrics of CloudWatch, each of which costs.
    pub metrics: usize,
}

/// One of the operator's commands, without its first word and without the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Topic, action and arguments.
    pub words: Vec<String>,
    /// The text in place of a file.
    pub text: Option<String>,
}

/// Why a command was not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// In words for its user.
    pub message: String,
    /// The problems of the text, with their lines.
    pub problems: Vec<Problem>,
}

/// A problem of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, counted from 1, if it is known.
    pub line: Option<usize>,
    /// The problem.
    pub problem: String,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { message, problems: Vec::new() }
    }
}

/// An error of the store's, in words.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let cause = error.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}").into()
    }
}

/// Where the deployment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// On this machine: reads cost nothing but its time.
    Local,
    /// In AWS: reads cost money.
    Aws,
}

/// Reads the refusals since a time, by code and operation; `Err` says why it cannot.
pub type Refusals = Arc<dyn Fn(Timestamp) -> Coming<Result<Vec<RefusalCount>, String>> + Send + Sync>;

/// A deployment, and the ways to it.
#[derive(Clone)]
pub struct Host {
    /// How people name the deployment.
    pub name: String,
    /// Where it runs.
    pub kind: Kind,
    /// The address of its API.
    pub api_url: String,
    /// Its tables.
    pub store: Store,
    /// The clock and randomness.
    pub ambient: Ambient,
    /// Its keys.
    pub keys: Keys,
    /// Its API.
    pub api: Api,
    /// The operator's commands on it.
    pub commands: Commands,
    /// Who may use the console.
    pub access: Guard,
    /// Whether its page may change something; if not, `commands` refuses changes, too.
    pub may_change: bool,
    /// The requests that the host itself answers, when it does.
    pub tape: Option<Arc<Tape>>,
    /// Whether the host makes faults for requests when it is asked to, at `/_local/faults`.
    pub has_faults: bool,
    /// What AWS counts, when the deployment runs there.
    pub counts: Option<AwsCounts>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

//! The emulator without a port: a database that answers DynamoDB's wire format in the caller's thread.
//!
//! No call waits, so that a simulation controls the time between a call and its response.

use std::fmt;

use dynoxide::{Database, DynoxideError, actions::transact_write_items::TransactWriteItemsRequest};
use serde::{Serialize, de::DeserializeOwned};

use super::{error::EmulatorError, limits::Limited, notices::Notices, schema};
use crate::template::Table;

/// A database; clones are handles to the same one.
#[derive(Clone)]
pub struct InProcess {
    database: Database,
    /// Whether it remembers transactions' tokens, to recognise retries.
    remembers_tokens: bool,
    notices: Notices,
}

/// A response in DynamoDB's wire format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireAnswer {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: String,
}

impl InProcess {
    /// A database with `tables`, each named by its logical id.
    ///
    /// # Errors
    /// [`EmulatorError::Database`], [`EmulatorError::Table`].
    pub fn new(tables: &[Table]) -> Result<Self, EmulatorError> {
        let database = Database::memory().map_err(EmulatorError::Database)?;
        for table in tables {
            schema::ensure(&database, table)?;
        }
        Ok(Self::from(database))
    }

    /// The database for callers that lose no responses and so never retry a transaction: it does not remember
    /// `ClientRequestToken`.
    ///
    /// Otherwise, each transaction searches all tokens of the last ten minutes.
    #[must_use]
    pub fn without_retries(self) -> Self {
        Self { remembers_tokens: false, ..self }
    }

    /// The database whose writes are noted in `notices`.
    #[must_use]
    pub(super) fn noting(self, notices: Notices) -> Self {
        Self { notices, ..self }
    }

    /// Runs `operation` (its name after the dot in `x-amz-target`) with the JSON `body`.
    #[must_use]
    pub fn answer(&self, operation: &str, body: &[u8]) -> WireAnswer {
        let database = &self.database;
        let answered = match operation {
            "CreateTable" => run(body, |request| database.create_table(request)),
            "DescribeTable" => run(body, |request| database.describe_table(request)),
            "DescribeTimeToLive" => run(body, |request| database.describe_time_to_live(request)),
            "ListTables" => run(body, |request| database.list_tables(request)),
            "GetItem" => run(body, |request| database.get_item(request)),
            "TransactGetItems" => run(body, |request| database.transact_get_items(request)),
            "BatchWriteItem" => run(body, |request| database.batch_write_item(request)),
            "BatchGetItem" => run(body, |request| database.batch_get_item(request)),
            "Query" => run_limited(body, |request| database.query(request)),
            "Scan" => run_limited(body, |request| database.scan(request)),
            "PutItem" => run_limited(body, |request| database.put_item(request)),
            "UpdateItem" => run_limited(body, |request| database.update_item(request)),
            "DeleteItem" => run_limited(body, |request| database.delete_item(request)),
            "TransactWriteItems" => run_limited(body, |mut request: TransactWriteItemsRequest| {
                request.client_request_token.take_if(|_| !self.remembers_tokens);
                database.transact_write_items(request)
            }),
            other => Err(DynoxideError::ValidationException(format!(
                "{other} is none of the operations that the embedded database has here"
            ))),
        };
        match answered {
            Ok(answer) => {
                if matches!(operation, "PutItem" | "UpdateItem" | "TransactWriteItems") {
                    self.notices.note(body);
                }
                WireAnswer { status: 200, body: answer }
            }
            Err(error) => WireAnswer { status: error.status_code(), body: error.to_json() },
        }
    }

    /// Deletes items whose time to live is over by the machine's clock, as DynamoDB does within days. Returns
    /// how many.
    ///
    /// Takes as long as reading all tables with a time to live. Concurrent calls wait for a few items.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn sweep(&self) -> Result<usize, DynoxideError> {
        self.database.sweep_ttl()
    }
}

impl From<Database> for InProcess {
    fn from(database: Database) -> Self {
        Self { database, remembers_tokens: true, notices: Notices::default() }
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

fn run_limited<Q: DeserializeOwned + Limited, A: Serialize>(
    body: &[u8],
    execute: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    run(body, |request: Q| {
        request.check()?;
        execute(request)
    })
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    execute: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    let unreadable = |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    let answer = execute(serde_json::from_slice(body).map_err(unreadable)?)?;
    serde_json::to_string(&answer).map_err(unreadable)
}

//! The emulator without a port: a database that answers DynamoDB's wire format in the caller's thread.
//!
//! Nothing here waits, so that a simulation owns the time between a call and its answer.

use std::fmt;

use dynoxide::{Database, DynoxideError, actions::transact_write_items::TransactWriteItemsRequest};
use serde::{Serialize, de::DeserializeOwned};

use super::{error::EmulatorError, limits::Limited, schema};
use crate::template::Table;

/// A database; clones are handles to the same one.
#[derive(Clone)]
pub struct InProcess {
    database: Database,
    /// Whether the tokens of transactions are remembered for those that are sent again.
    remembers_tokens: bool,
}

/// An answer in DynamoDB's wire format.
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

    /// For callers that lose no answer and so never send a transaction again: its `ClientRequestToken` is not
    /// remembered.
    ///
    /// The emulator looks through all tokens of the last ten minutes at each transaction.
    #[must_use]
    pub fn asked_once(self) -> Self {
        Self { remembers_tokens: false, ..self }
    }

    /// Answers `operation` (as `x-amz-target` names it after the dot) for the JSON `body`, at once.
    #[must_use]
    pub fn answer(&self, operation: &str, body: &[u8]) -> WireAnswer {
        let database = &self.database;
        let answered = match operation {
            "GetItem" => run(body, |request| database.get_item(request)),
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
            other => {
                Err(DynoxideError::ValidationException(format!("{other} is not among what Muster asks for")))
            }
        };
        match answered {
            Ok(body) => WireAnswer { status: 200, body },
            Err(error) => WireAnswer { status: error.status_code(), body: error.to_json() },
        }
    }

    /// Deletes the items whose time to live is over by the machine's clock, as DynamoDB does within days; how
    /// many they were.
    ///
    /// Takes as long as reading all tables that have such items; who asks meanwhile waits for a few of them.
    ///
    /// # Errors
    /// What the database says.
    pub fn sweep(&self) -> Result<usize, DynoxideError> {
        self.database.sweep_ttl()
    }
}

impl From<Database> for InProcess {
    fn from(database: Database) -> Self {
        Self { database, remembers_tokens: true }
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

//! The last count of a namespace's players, shared by all instances, and who may count next.

use std::time::Duration;

use aws_sdk_dynamodb::{operation::update_item::UpdateItemError, types::ReturnValuesOnConditionCheckFailure};
use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, ids::NamespaceId},
    store::{
        client::Store,
        failures::failure,
        items::{from_item, number, text},
    },
};

/// How old a count may be (decision 42).
pub const COUNT_AGE_MAX: Duration = Duration::from_secs(5);
/// How long whoever counts keeps others from it: longer than a function runs.
pub const COUNTING_MAX: Duration = Duration::from_secs(30);
/// How long the last count is kept.
const COUNT_LIFE: Duration = Duration::from_secs(24 * 3_600);

/// A count as kept: JSON text of the operation's own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeptCount {
    /// When it was counted; absent while the first one is under way.
    #[serde(default)]
    pub counted_at: Option<Timestamp>,
    /// What was counted.
    #[serde(default)]
    pub json: String,
}

/// Who counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Whoever asked.
    Own,
    /// Somebody else does, or did within [`COUNT_AGE_MAX`]; the last count, as it is kept.
    Others(KeptCount),
}

fn statistics_key(namespace_id: &NamespaceId) -> String {
    format!("statistics/{namespace_id}")
}

impl Store {
    /// The last count of a namespace's players. 0.5 read units for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn kept_count(&self, namespace_id: &NamespaceId) -> Result<Option<KeptCount>, Error> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.tables.ledger)
            .key("pk", text(statistics_key(namespace_id)))
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        answer.item.map(from_item).transpose()
    }

    /// Takes the turn to count, unless somebody counts, or did within [`COUNT_AGE_MAX`]. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn take_turn_to_count(
        &self,
        namespace_id: &NamespaceId,
        now: Timestamp,
    ) -> Result<Turn, Error> {
        let change = "SET #claimed_at = :now, #expires_at = :expiry";
        let condition = "(attribute_not_exists(#claimed_at) OR #claimed_at <= :stale) \
                         AND (attribute_not_exists(#counted_at) OR #counted_at <= :old)";
        let call = self
            .on_ledger(&statistics_key(namespace_id), change, condition)
            .expression_attribute_values(":now", number(now))
            .expression_attribute_values(":stale", number(now.before(COUNTING_MAX)))
            .expression_attribute_values(":old", number(now.before(COUNT_AGE_MAX)))
            .expression_attribute_values(":expiry", number((now + COUNT_LIFE).secs()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(Turn::Own)
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    self.meter.refused(1.0);
                    let item = refused.item.clone().unwrap_or_default();
                    from_item(item).map(Turn::Others)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Keeps the count of the turn that was taken at `claimed_at` for the other instances, and gives the turn
    /// back; unless that took so long that somebody else took it. One write unit for each started KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_count(
        &self,
        namespace_id: &NamespaceId,
        json: &str,
        claimed_at: Timestamp,
        counted_at: Timestamp,
    ) -> Result<(), Error> {
        let change = "SET #counted_at = :at, #json = :json, #expires_at = :expiry REMOVE #claimed_at";
        let condition = "#claimed_at = :claimed";
        let write = self
            .on_ledger(&statistics_key(namespace_id), change, condition)
            .expression_attribute_values(":at", number(counted_at))
            .expression_attribute_values(":json", text(json))
            .expression_attribute_values(":claimed", number(claimed_at))
            .expression_attribute_values(":expiry", number((counted_at + COUNT_LIFE).secs()));
        self.applies(write).await.map(|_kept| ())
    }
}

//! Ending lobbies that nobody needs any more, when their room is needed.

use std::time::Duration;

use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{TransactWriteItem, Update},
};

use super::{Store, expressions::names, failure, number, text, to_item};
use crate::{ambient::Timestamp, errors::Error, lobby::Lobby};

/// How long an ended lobby stays readable, so that late calls learn that it ended.
const ENDED_LIFE: Duration = Duration::from_secs(24 * 3_600);

impl Store {
    /// Ends `lobby`, which was seen to be one that may end, and gives back its place on the server and in the count;
    /// whether it did. It does not when the lobby changed meanwhile: a revived lease, a seat taken.
    ///
    /// One transaction of three items: 2 write units each, and those of the indexes.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn end_unneeded_lobby(&self, lobby: &Lobby, now: Timestamp) -> Result<bool, Error> {
        let Some(server) = &lobby.server else {
            return Ok(false);
        };
        let build = |update: aws_sdk_dynamodb::types::builders::UpdateBuilder| {
            let update = update.build().map_err(|error| Error::Bug(error.to_string()))?;
            Ok::<_, Error>(TransactWriteItem::builder().update(update).build())
        };
        let give_back = "SET #used = #used - :one, #free_from = #registered_at";
        let place = Update::builder()
            .table_name(&self.tables.servers)
            .key("server", text(server.to_string()))
            .update_expression(give_back)
            .condition_expression("#used > :zero")
            .set_expression_attribute_names(Some(names(&[give_back])))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":zero", number(0));
        let call = self
            .client
            .transact_write_items()
            .transact_items(build(self.end_as_seen(lobby, now)?)?)
            .transact_items(build(place)?)
            .transact_items(build(self.uncount_lobby(&lobby.pool.namespace_id))?)
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(true)
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(_)) => {
                    self.meter.refused(6.0);
                    Ok(false)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    fn end_as_seen(
        &self,
        lobby: &Lobby,
        now: Timestamp,
    ) -> Result<aws_sdk_dynamodb::types::builders::UpdateBuilder, Error> {
        let change = "SET #stage = :ended, #expires_at = :expiry REMOVE #joinable_from, #server";
        let condition = "#stage <> :ended AND (#lease_until <= :now OR (#reserved = :reserved AND #connected = :connected))";
        let mut seen = to_item(lobby)?;
        let mut seats = |name: &str| {
            seen.remove(name).ok_or_else(|| Error::Bug(format!("a lobby serialized without `{name}`")))
        };
        Ok(Update::builder()
            .table_name(&self.tables.lobbies)
            .key("lobby_id", text(lobby.lobby_id.as_str()))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_values(":ended", text("ended"))
            .expression_attribute_values(":now", number(now))
            .expression_attribute_values(":expiry", number((now + ENDED_LIFE).secs()))
            .expression_attribute_values(":reserved", seats("reserved")?)
            .expression_attribute_values(":connected", seats("connected")?))
    }
}

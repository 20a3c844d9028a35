//! Writes: each of one item, sent alone or in a transaction with others.
//!
//! Expressions stand in the code as DynamoDB reads them. A placeholder `#name` stands for the attribute of
//! that name unless another one is given. A placeholder `:value` stands for a given value or for a
//! [`constant`]. A write that lacks a value, or has one that no expression names, is not sent.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Config,
    operation::{
        transact_write_items::TransactWriteItemsError,
        update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    },
    types::{
        AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValue,
        ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update,
    },
};

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{LobbyId, ServerKey},
    },
    store::{
        client::{Store, retries},
        conflicts::refused,
        expressions::placeholders,
        failures::failure,
        items::{Item, Record, from_item, number, text},
        keys::{lobby_item, pk_item, server_item},
    },
};

/// Tries of a transaction while others conflict with it.
const TRANSACTION_TRIES: u32 = 16;

/// A write of one item.
#[derive(Clone)]
pub(super) struct Write {
    table: String,
    /// The key, or the whole item to put.
    item: Item,
    action: Action,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
    /// What [`Self::patiently`] says.
    backoff: Option<Duration>,
}

#[derive(Clone)]
enum Action {
    Check,
    Change(String),
    Put,
    Delete,
}

impl Write {
    /// A write of the item of `key`, which only checks a condition unless a change is added.
    pub(super) fn to(table: &str, key: Item) -> Self {
        let (names, values) = (HashMap::new(), HashMap::new());
        let (action, condition, backoff) = (Action::Check, None, None);
        Self { table: table.to_owned(), item: key, action, condition, names, values, backoff }
    }

    /// A write that puts the whole `item`.
    pub(super) fn put(table: &str, item: Item) -> Self {
        Self { action: Action::Put, ..Self::to(table, item) }
    }

    /// Deletes the item.
    pub(super) fn delete(self) -> Self {
        Self { action: Action::Delete, ..self }
    }

    /// Changes the item by an update expression.
    pub(super) fn change(self, expression: impl Into<String>) -> Self {
        Self { action: Action::Change(expression.into()), ..self }
    }

    /// Makes the assignment `set` besides those of an update expression that begins with others.
    pub(super) fn also_set(self, set: &str) -> Self {
        let action = match self.action {
            Action::Change(change) => Action::Change(change.replacen("SET ", &format!("SET {set}, "), 1)),
            other => other,
        };
        Self { action, ..self }
    }

    /// Writes only if `condition` holds.
    pub(super) fn when(self, condition: impl Into<String>) -> Self {
        Self { condition: Some(condition.into()), ..self }
    }

    /// Writes only if `clause` holds, too.
    pub(super) fn also_when(self, clause: &str) -> Self {
        let condition = self.condition.map(|condition| format!("{condition} AND {clause}"));
        Self { condition: condition.or_else(|| Some(clause.to_owned())), ..self }
    }

    /// Sent alone, this write is tried again after a random time of up to `backoff`, then of up to twice as
    /// long, and so on: many requests write to its item at one time.
    pub(super) fn patiently(self, backoff: Duration) -> Self {
        Self { backoff: Some(backoff), ..self }
    }

    /// Binds the placeholder to another attribute than that of its name.
    pub(super) fn name(mut self, placeholder: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.names.insert(placeholder.into(), attribute.into());
        self
    }

    /// Binds the placeholder to a value, if there is one.
    pub(super) fn with(
        mut self,
        placeholder: impl Into<String>,
        value: impl Into<Option<AttributeValue>>,
    ) -> Self {
        self.values.extend(value.into().map(|value| (placeholder.into(), value)));
        self
    }

    /// This write with every placeholder bound.
    fn bound(mut self) -> Result<Self, Error> {
        let change = if let Action::Change(change) = &self.action { change.as_str() } else { "" };
        let condition = self.condition.as_deref().unwrap_or_default();
        let used: Vec<&str> = [change, condition].into_iter().flat_map(placeholders).collect();
        let mut given = self.names.keys().chain(self.values.keys());
        if let Some(needless) = given.find(|given| !used.contains(&given.as_str())) {
            return Err(Error::Bug(format!("no expression has `{needless}`: {change} {condition}")));
        }
        for placeholder in used {
            if let Some(name) = placeholder.strip_prefix('#') {
                self.names.entry(placeholder.to_owned()).or_insert_with(|| name.to_owned());
            } else if !self.values.contains_key(placeholder) {
                let lacking = || Error::Bug(format!("`{placeholder}` has no value: {change} {condition}"));
                let value = constant(placeholder).ok_or_else(lacking)?;
                self.values.insert(placeholder.to_owned(), value);
            }
        }
        Ok(self)
    }

    /// This write as a part of a transaction, which returns the item that refused a change or a put.
    fn part(self) -> Result<TransactWriteItem, Error> {
        let Self { table, item, action, condition, names, values, backoff: _ } = self.bound()?;
        macro_rules! part {
            ($builder:expr) => {
                $builder
                    .table_name(table)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(some(names))
                    .set_expression_attribute_values(some(values))
                    .build()
                    .map_err(|error| Error::Bug(error.to_string()))?
            };
        }
        let all = TransactWriteItem::builder();
        let all = match action {
            Action::Check => all.condition_check(part!(ConditionCheck::builder().set_key(Some(item)))),
            Action::Delete => all.delete(part!(Delete::builder().set_key(Some(item)))),
            Action::Put => {
                let put = Put::builder().set_item(Some(item));
                all.put(part!(put.return_values_on_condition_check_failure(AllOld)))
            }
            Action::Change(change) => {
                let update = Update::builder().set_key(Some(item)).update_expression(change);
                all.update(part!(update.return_values_on_condition_check_failure(AllOld)))
            }
        };
        Ok(all.build())
    }
}

impl Store {
    /// A write of an item of the catalogue.
    pub(super) fn on_catalog(&self, key: Item) -> Write {
        Write::to(&self.tables.catalog, key)
    }

    /// A write of a lobby.
    pub(super) fn on_lobby(&self, id: &LobbyId) -> Write {
        Write::to(&self.tables.lobbies, lobby_item(id))
    }

    /// A write of a game server.
    pub(super) fn on_server(&self, key: &ServerKey) -> Write {
        Write::to(&self.tables.servers, server_item(key))
    }

    /// A write of a client's item.
    pub(super) fn on_client(&self, pk: impl Into<String>) -> Write {
        Write::to(&self.tables.clients, pk_item(pk))
    }

    /// A write of a count or an election.
    pub(super) fn on_ledger(&self, pk: impl Into<String>) -> Write {
        Write::to(&self.tables.ledger, pk_item(pk))
    }

    fn call(&self, write: Write) -> Result<UpdateItemFluentBuilder, Error> {
        let Write { table, item, action, condition, names, values, backoff: _ } = write.bound()?;
        let Action::Change(change) = action else {
            return Err(Error::Bug("a write without a change was sent alone".to_owned()));
        };
        Ok(self
            .client
            .update_item()
            .table_name(table)
            .set_key(Some(item))
            .update_expression(change)
            .set_condition_expression(condition)
            .set_expression_attribute_names(some(names))
            .set_expression_attribute_values(some(values))
            .return_consumed_capacity(self.meter.mode()))
    }

    /// Sends a conditional change: `Ok` with the item after it, `Err` with the item that refused it, if there
    /// is one.
    pub(super) async fn update<T: Record>(&self, write: Write) -> Result<Result<T, Option<T>>, Error> {
        let retries = write.backoff.map(|backoff| Config::builder().retry_config(retries(backoff)));
        let call = self.call(write)?.return_values(ReturnValue::AllNew);
        let call = call.return_values_on_condition_check_failure(AllOld);
        let answer = match retries {
            Some(retries) => call.customize().config_override(retries).send().await,
            None => call.send().await,
        };
        match answer {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                let item =
                    answer.attributes.ok_or_else(|| Error::Bug("an update returned no item".to_owned()))?;
                from_item(item).map(Ok)
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    self.meter.refused(1.0);
                    refused.item.clone().map(from_item).transpose().map(Err)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Sends a change, and returns whether its condition held.
    pub(super) async fn applies(&self, write: Write) -> Result<bool, Error> {
        match self.call(write)?.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(true)
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => {
                    self.meter.refused(1.0);
                    Ok(false)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Makes all `parts` or, if one is refused, none. Returns the reasons then, in the order of the parts.
    pub(super) async fn transact(
        &self,
        parts: Vec<Write>,
    ) -> Result<Result<(), Vec<CancellationReason>>, Error> {
        let part_count = parts.len();
        let parts = parts.into_iter().map(Write::part).collect::<Result<_, _>>()?;
        let call = self.client.transact_write_items().set_transact_items(Some(parts));
        match call.return_consumed_capacity(self.meter.mode()).send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(Ok(()))
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                    self.meter.refused(2.0 * part_count as f64);
                    Ok(Err(canceled.cancellation_reasons().to_vec()))
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// The same for small items, retried while another transaction conflicts. Returns the positions of the
    /// parts whose conditions refused it, none when all are made.
    pub(super) async fn together(&self, parts: Vec<Write>) -> Result<Vec<usize>, Error> {
        let mut tries = 1..=TRANSACTION_TRIES;
        loop {
            let Err(reasons) = self.transact(parts.clone()).await? else { return Ok(Vec::new()) };
            let refused: Vec<_> =
                (0..reasons.len()).filter(|part| refused(&reasons, *part).is_some()).collect();
            if !refused.is_empty() {
                return Ok(refused);
            }
            let codes: Vec<_> = reasons.iter().filter_map(CancellationReason::code).collect();
            if !codes.contains(&"TransactionConflict") || tries.next().is_none() {
                let cause = format!("DynamoDB: a transaction was canceled: {}", codes.join(", "));
                return Err(Error::Unavailable(cause));
            }
        }
    }
}

/// The value of a placeholder that is the same in every expression.
fn constant(placeholder: &str) -> Option<AttributeValue> {
    Some(match placeholder {
        ":zero" => number(0),
        ":one" => number(1),
        ":true" => AttributeValue::Bool(true),
        ":false" => AttributeValue::Bool(false),
        ":never" => number(Timestamp::NEVER),
        ":starting" => text("starting"),
        ":ready" => text("ready"),
        ":ended" => text("ended"),
        _ => return None,
    })
}

/// DynamoDB refuses an empty map.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(write: Write) -> Result<Write, String> {
        write.bound().map_err(|error| error.cause().unwrap_or_default().to_owned())
    }

    fn write() -> Write {
        Write::to("table", Item::new())
            .change("SET #taken = #taken + :one, #reserved.#seat = :until")
            .when("#taken < #max_players AND #stage <> :ended")
            .name("#seat", "s-1")
    }

    #[test]
    fn placeholders_stand_for_their_own_names_and_for_what_is_given() {
        let bound = bound(write().with(":until", number(7)).with(":last", None)).unwrap();
        let own = ["taken", "reserved", "max_players", "stage"].map(|name| (name, name));
        let names = own.into_iter().chain([("seat", "s-1")]);
        let names = names.map(|(placeholder, name)| (format!("#{placeholder}"), name.to_owned()));
        assert_eq!(bound.names, names.collect());
        let values = [(":one", number(1)), (":until", number(7)), (":ended", text("ended"))];
        assert_eq!(bound.values, values.map(|(placeholder, value)| (placeholder.to_owned(), value)).into());
    }

    #[test]
    fn what_is_missing_or_needless_is_refused() {
        assert!(bound(write()).err().unwrap().starts_with("`:until` has no value"));
        let whole = || write().with(":until", number(7));
        assert!(
            bound(whole().with(":last", number(1))).err().unwrap().starts_with("no expression has `:last`")
        );
        assert!(bound(whole().name("#tag", "t")).err().unwrap().starts_with("no expression has `#tag`"));
        assert!(bound(whole().when("#tags = :tags")).err().unwrap().starts_with("`:tags` has no value"));
    }
}

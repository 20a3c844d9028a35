//! Records as items.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Serialize, de::DeserializeOwned};

use crate::models::errors::Error;

/// A DynamoDB item.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) fn to_item(value: &impl Serialize) -> Result<Item, Error> {
    serde_dynamo::to_item(value).map_err(|error| Error::Bug(format!("an item did not serialize: {error}")))
}

pub(super) fn from_item<T: Record>(item: Item) -> Result<T, Error> {
    serde_dynamo::from_item(item).map_err(|error| Error::Bug(format!("an item did not parse: {error}")))
}

pub(super) fn to_value(value: impl Serialize) -> Result<AttributeValue, Error> {
    serde_dynamo::to_attribute_value(value)
        .map_err(|error| Error::Bug(format!("a value did not serialize: {error}")))
}

/// The items that a query or a scan returned.
pub(super) fn from_items<T: Record>(items: Option<Vec<Item>>) -> Result<Vec<T>, Error> {
    items.unwrap_or_default().into_iter().map(from_item).collect()
}

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A type that items are read as ([`crate::base::record`]).
pub trait Record: DeserializeOwned {}

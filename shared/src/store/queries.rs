//! Queries of a table or of an index.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

use crate::{
    models::errors::Error,
    store::{
        client::Store,
        expressions::names,
        failures::failure,
        items::{Item, Record, from_item},
    },
};

/// A query of `table` by `condition`, in which a placeholder `#name` stands for the key of that name.
pub(super) fn query(store: &Store, table: &str, condition: &str) -> QueryFluentBuilder {
    store
        .client
        .query()
        .table_name(table)
        .key_condition_expression(condition)
        .set_expression_attribute_names(Some(names(condition)))
}

/// Sends a query: the records of a page, and the key after which the next one begins, if there is one.
pub(super) async fn page<T: Record>(
    store: &Store,
    query: QueryFluentBuilder,
) -> Result<(Vec<T>, Option<Item>), Error> {
    let (items, next) = page_of_items(store, query).await?;
    Ok((items.into_iter().map(from_item).collect::<Result<_, _>>()?, next))
}

/// The same of items that are no records.
pub(super) async fn page_of_items(
    store: &Store,
    query: QueryFluentBuilder,
) -> Result<(Vec<Item>, Option<Item>), Error> {
    let query = query.return_consumed_capacity(store.meter.mode());
    let answer = query.send().await.map_err(|error| failure(&error))?;
    store.meter.read(answer.consumed_capacity());
    Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
}

/// A number of items as a query's limit.
pub(super) fn items(limit: usize) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

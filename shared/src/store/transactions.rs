//! Parts of transactions.

use aws_sdk_dynamodb::{
    operation::update_item::builders::UpdateItemFluentBuilder,
    types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, builders::UpdateBuilder},
};

use crate::models::errors::Error;

/// A single update as a part of a transaction, which also tells what refused it.
pub(super) fn as_part(write: &UpdateItemFluentBuilder) -> UpdateBuilder {
    Update::builder()
        .set_table_name(write.get_table_name().clone())
        .set_key(write.get_key().clone())
        .set_update_expression(write.get_update_expression().clone())
        .set_condition_expression(write.get_condition_expression().clone())
        .set_expression_attribute_names(write.get_expression_attribute_names().clone())
        .set_expression_attribute_values(write.get_expression_attribute_values().clone())
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
}

pub(super) fn update(builder: UpdateBuilder) -> Result<TransactWriteItem, Error> {
    let update = builder.build().map_err(|error| Error::Bug(error.to_string()))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

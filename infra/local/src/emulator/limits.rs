//! Limits of DynamoDB that the embedded database lacks, observed on Amazon's DynamoDB Local.
//!
//! The embedded database has the others itself: for sizes of expressions, items and transactions, and keys
//! without a value.

use std::collections::HashMap;

use dynoxide::{
    DynoxideError,
    actions::{
        delete_item::DeleteItemRequest, put_item::PutItemRequest, query::QueryRequest, scan::ScanRequest,
        transact_write_items::TransactWriteItemsRequest, update_item::UpdateItemRequest,
    },
    types::AttributeValue,
};

/// Operators of one expression: comparisons, `AND`, `OR`, `NOT`, `BETWEEN`, `IN`, functions, `+` and `-`. The
/// dots of paths and the `=` of assignments do not count.
const OPERATORS_MAX: usize = 300;
/// Values of an `IN`.
const IN_OPERANDS_MAX: usize = 100;

/// A request's expression, as messages name it.
const CONDITION: &str = "ConditionExpression";
const FILTER: &str = "FilterExpression";
const KEY_CONDITION: &str = "KeyConditionExpression";
const UPDATE: &str = "UpdateExpression";

/// A request with such a limit.
pub(super) trait Limited {
    /// Checks that DynamoDB would accept it.
    fn check(&self) -> Result<(), DynoxideError>;
}

impl Limited for QueryRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        within_limits(KEY_CONDITION, self.key_condition_expression.as_deref())?;
        within_limits(FILTER, self.filter_expression.as_deref())?;
        let values = self.expression_attribute_values.as_ref();
        key_values_given(self.key_condition_expression.as_deref().unwrap_or_default(), values)
    }
}

impl Limited for ScanRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        within_limits(FILTER, self.filter_expression.as_deref())
    }
}

impl Limited for PutItemRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        within_limits(CONDITION, self.condition_expression.as_deref())
    }
}

impl Limited for DeleteItemRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        within_limits(CONDITION, self.condition_expression.as_deref())
    }
}

impl Limited for UpdateItemRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        within_limits(UPDATE, self.update_expression.as_deref())?;
        within_limits(CONDITION, self.condition_expression.as_deref())
    }
}

impl Limited for TransactWriteItemsRequest {
    fn check(&self) -> Result<(), DynoxideError> {
        for item in &self.transact_items {
            let put = item.put.as_ref().and_then(|put| put.condition_expression.as_deref());
            let delete = item.delete.as_ref().and_then(|delete| delete.condition_expression.as_deref());
            let update = item.update.as_ref();
            let conditions = [
                put,
                delete,
                update.and_then(|update| update.condition_expression.as_deref()),
                item.condition_check.as_ref().map(|check| check.condition_expression.as_str()),
            ];
            within_limits(UPDATE, update.map(|update| update.update_expression.as_str()))?;
            conditions.into_iter().try_for_each(|condition| within_limits(CONDITION, condition))?;
        }
        Ok(())
    }
}

fn within_limits(part: &str, expression: Option<&str>) -> Result<(), DynoxideError> {
    let counted = count(part, expression.unwrap_or_default());
    let refused = |what: String| Err(DynoxideError::ValidationException(format!("Invalid {part}: {what}")));
    if counted.in_operands > IN_OPERANDS_MAX {
        return refused(format!(
            "The IN operator is provided with too many operands; number of operands: {}",
            counted.in_operands
        ));
    }
    if counted.operators > OPERATORS_MAX {
        return refused(format!(
            "The expression contains too many operators; operator count: {}",
            counted.operators
        ));
    }
    Ok(())
}

/// A key condition compares with values of key attributes, which are never empty.
fn key_values_given(
    condition: &str,
    values: Option<&HashMap<String, AttributeValue>>,
) -> Result<(), DynoxideError> {
    let is_empty = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.is_empty(),
        AttributeValue::B(bytes) => bytes.is_empty(),
        _ => false,
    };
    let empty =
        tokens(condition).find(|token| values.and_then(|values| values.get(*token)).is_some_and(is_empty));
    match empty {
        Some(value) => Err(DynoxideError::ValidationException(format!(
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string \
             value. Value: {value}"
        ))),
        None => Ok(()),
    }
}

#[derive(Default)]
struct Counted {
    operators: usize,
    /// The most operands of an `IN`.
    in_operands: usize,
}

fn count(part: &str, expression: &str) -> Counted {
    let mut counted = Counted::default();
    let mut tokens = tokens(expression).peekable();
    // The `AND` of a `BETWEEN` joins its two values.
    let mut open_between = 0_usize;
    while let Some(token) = tokens.next() {
        let is_operator = match token.to_ascii_uppercase().as_str() {
            "BETWEEN" => {
                open_between += 1;
                true
            }
            "AND" if open_between > 0 => {
                open_between -= 1;
                false
            }
            "IN" => {
                let operands = tokens.by_ref().take_while(|token| *token != ")");
                let operands = operands.filter(|token| !matches!(*token, "(" | ",")).count();
                counted.in_operands = counted.in_operands.max(operands);
                true
            }
            "AND" | "OR" | "NOT" | "<>" | "<" | "<=" | ">" | ">=" | "+" | "-" => true,
            "=" => part != UPDATE,
            _ => tokens.peek() == Some(&"(") && token.starts_with(|first: char| first.is_ascii_alphabetic()),
        };
        counted.operators += usize::from(is_operator);
    }
    counted
}

/// The tokens of an expression: words, paths, values and signs.
fn tokens(expression: &str) -> impl Iterator<Item = &str> {
    let is_word = |letter: char| letter.is_alphanumeric() || "_.#:[]".contains(letter);
    let mut rest = expression;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = if is_word(first) {
            rest.find(|letter: char| !is_word(letter)).unwrap_or(rest.len())
        } else if ["<>", "<=", ">="].iter().any(|sign| rest.starts_with(sign)) {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_counted_as_dynamodb_counts_them() {
        for (part, expression, operators) in [
            (CONDITION, "", 0),
            (CONDITION, "#a.#b.c[1] = :v", 1),
            (CONDITION, "a = :v AND b<>:v OR NOT c >= :v", 6),
            (CONDITION, "NOT attribute_exists(#and.not) and attribute_not_exists (b)", 4),
            (CONDITION, "size(a) < :v", 2),
            (CONDITION, "(a BETWEEN :v AND :w) AND b IN (:v, :w)", 3),
            (CONDITION, "a IN (:v,:w) AND (b = :v)", 3),
            (UPDATE, "SET a = :v, b = if_not_exists(b, :v) + :w - c REMOVE d", 3),
        ] {
            assert_eq!(count(part, expression).operators, operators, "{expression}");
        }
        assert_eq!(count(CONDITION, "a IN (:v) OR b IN (:v, :w, c.d) OR c IN (:v)").in_operands, 3);
    }
}

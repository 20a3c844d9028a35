//! DynamoDB's requests as the link reads them: which item each part writes, under which conditions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use model::conditions::{Condition, PUT, Table, Write, clauses};

/// How long a lobby may take to become ready, in milliseconds.
pub(crate) const STARTING_MS: u64 = 300_000;

/// An item's place: its table and its key as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) table: String,
    pub(crate) key: String,
}

/// One write of a request.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) place: Place,
    /// The key alone, as a request has it.
    pub(crate) key: Value,
    /// Which of matchmaking's writes it is; `None` for other tables and for unknown writes.
    pub(crate) write: Option<Write>,
    /// The update expression, or [`PUT`].
    pub(crate) change: String,
    pub(crate) clauses: Vec<String>,
    /// The time that its writer went by, in milliseconds.
    pub(crate) now: Option<u64>,
}

/// The table of matchmaking that `name` is.
pub(crate) fn known_table(name: &str) -> Option<Table> {
    Some(match name {
        "LobbiesTable" => Table::Lobbies,
        "ServersTable" => Table::Servers,
        "LedgerTable" => Table::Ledger,
        "ClientsTable" => Table::Clients,
        _ => return None,
    })
}

/// The key attributes of a table.
pub(crate) fn key_attributes(table: &str) -> &'static [&'static str] {
    match table {
        "CatalogTable" => &["pk", "sk"],
        "TokensTable" => &["digest"],
        "LobbiesTable" => &["lobby_id"],
        "LobbyDataTable" => &["lobby_id", "part"],
        "ServersTable" => &["server"],
        "LedgerTable" | "ClientsTable" => &["pk"],
        other => panic!("no such table: {other}"),
    }
}

/// The place of the item whose attributes include its key.
pub(crate) fn place(table: &str, attributes: &Value) -> Place {
    let texts = key_attributes(table).iter().map(|name| attributes[*name]["S"].as_str().unwrap_or_default());
    Place { table: table.to_owned(), key: texts.collect::<Vec<_>>().join("|") }
}

/// Whether `operation` changes items.
pub(crate) fn is_write(operation: &str) -> bool {
    matches!(operation, "PutItem" | "UpdateItem" | "DeleteItem" | "TransactWriteItems")
}

/// The writes of a request, in its order.
pub(crate) fn parts(operation: &str, request: &Value) -> Vec<Part> {
    if operation == "TransactWriteItems" {
        return items(request).iter().map(|item| part(body_of(item))).collect();
    }
    vec![part(request)]
}

fn items(request: &Value) -> &[Value] {
    request["TransactItems"].as_array().map_or(&[], Vec::as_slice)
}

fn body_of(item: &Value) -> &Value {
    let object = item.as_object().expect("a part of a transaction");
    object.values().find(|part| !part.is_null()).expect("a part of a transaction")
}

fn part(body: &Value) -> Part {
    let table = body["TableName"].as_str().unwrap_or_default();
    let attributes = if body["Item"].is_null() { &body["Key"] } else { &body["Item"] };
    let change = match (&body["UpdateExpression"], body["Item"].is_null()) {
        (Value::String(change), _) => change.clone(),
        (_, false) => PUT.to_owned(),
        (_, true) => "DELETE".to_owned(),
    };
    let key = key_attributes(table).iter().map(|name| ((*name).to_owned(), attributes[*name].clone()));
    Part {
        place: place(table, attributes),
        key: Value::Object(key.collect()),
        write: known_table(table).and_then(|table| Write::of(table, &change)),
        clauses: clauses(body["ConditionExpression"].as_str().unwrap_or_default()),
        now: now(&body["ExpressionAttributeValues"]),
        change,
    }
}

/// The time in a write's values: directly, or as that at which a lobby's time to start began.
fn now(values: &Value) -> Option<u64> {
    number(&values[":now"]).or_else(|| Some(number(&values[":start_limit"])? + STARTING_MS))
}

/// A number attribute.
pub(crate) fn number(attribute: &Value) -> Option<u64> {
    attribute["N"].as_str()?.parse().ok()
}

/// Drops `condition` from every write of `request` that carries it.
pub(crate) fn drop_condition(operation: &str, request: &mut Value, condition: &Condition) {
    if operation != "TransactWriteItems" {
        drop_clause(request, condition);
        return;
    }
    for item in request["TransactItems"].as_array_mut().into_iter().flatten() {
        for (_, body) in item.as_object_mut().into_iter().flatten() {
            drop_clause(body, condition);
        }
    }
}

fn drop_clause(body: &mut Value, condition: &Condition) {
    if !body.is_object() || part(body).write != Some(condition.write) {
        return;
    }
    let Some(expression) = body["ConditionExpression"].as_str().map(ToOwned::to_owned) else { return };
    let kept: Vec<String> =
        split(&expression).into_iter().filter(|clause| clauses(clause) != [condition.clause]).collect();
    let object = body.as_object_mut().expect("a write");
    if kept.is_empty() {
        object.remove("ConditionExpression");
    } else {
        object.insert("ConditionExpression".to_owned(), json!(kept.join(" AND ")));
    }
    let used: BTreeSet<String> = ["ConditionExpression", "UpdateExpression"]
        .iter()
        .filter_map(|field| object.get(*field)?.as_str())
        .flat_map(placeholders)
        .collect();
    for field in ["ExpressionAttributeNames", "ExpressionAttributeValues"] {
        let Some(entries) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
        entries.retain(|name, _| used.contains(name));
        if entries.is_empty() {
            object.remove(field);
        }
    }
}

/// As [`clauses`], with the numbers that those leave out.
fn split(expression: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_i32;
    for word in expression.split_whitespace() {
        if depth == 0 && word == "AND" {
            parts.push(String::new());
            continue;
        }
        for character in word.chars() {
            depth += i32::from(character == '(') - i32::from(character == ')');
        }
        let part = parts.last_mut().expect("one at least");
        if !part.is_empty() {
            part.push(' ');
        }
        part.push_str(word);
    }
    parts
}

fn placeholders(expression: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = expression.char_indices().filter(|(_, c)| *c == '#' || *c == ':');
    let placeholder = |(at, _): (usize, char)| {
        let rest = &expression[at + 1..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        expression[at..=at + end].to_owned()
    };
    starts.map(placeholder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_condition_takes_its_placeholders_along() {
        let mut request = json!({
            "TableName": "LobbiesTable",
            "Key": { "lobby_id": { "S": "a" } },
            "UpdateExpression": "SET #taken = #taken - :freed REMOVE #reserved.#lapsed0, #reserved.#lapsed10",
            "ConditionExpression": "#taken < :limit AND #reserved.#lapsed0 <= :now AND #reserved.#lapsed10 <= :now",
            "ExpressionAttributeNames": {
                "#taken": "taken", "#reserved": "reserved", "#lapsed0": "x", "#lapsed10": "y",
            },
            "ExpressionAttributeValues": { ":freed": { "N": "1" }, ":limit": { "N": "3" }, ":now": { "N": "5" } },
        });
        let condition = Condition { write: Write::TakeOverSeat, clause: "#reserved.#lapsed <= :now" };
        drop_condition("UpdateItem", &mut request, &condition);
        assert_eq!(request["ConditionExpression"], "#taken < :limit");
        assert_eq!(request["ExpressionAttributeNames"].as_object().unwrap().len(), 4);
        assert_eq!(
            request["ExpressionAttributeValues"],
            json!({ ":freed": { "N": "1" }, ":limit": { "N": "3" } })
        );
    }
}

//! The store's calls: captured on their way, changed, and made by both databases.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use muster_local::{
    emulator::{
        in_process::{InProcess, WireAnswer},
        link::{Call, Carried, Link},
    },
    stack::table_names,
};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::mapping::{HEAD_TICK_MS, Item, TICK_MS};
use crate::conditions::{PUT, Table, Write, normalized};

fn wire_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "S": text }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::Bool(flag) => json!({ "BOOL": flag }),
        Value::Array(list) => json!({ "L": list.iter().map(wire_value).collect::<Vec<_>>() }),
        Value::Object(map) => json!({ "M": wire(map) }),
        Value::Null => panic!("no attribute is null"),
    }
}

/// An item as DynamoDB sends it.
pub(super) fn wire(item: &Item) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.clone(), wire_value(value))).collect())
}

fn plain_value(value: &Value) -> Value {
    let (kind, value) = value.as_object().and_then(|map| map.iter().next()).unwrap();
    match kind.as_str() {
        "N" => json!(value.as_str().unwrap().parse::<i64>().unwrap()),
        "M" => Value::Object(plain(value)),
        "L" => value.as_array().unwrap().iter().map(plain_value).collect(),
        _ => value.clone(),
    }
}

/// An item that DynamoDB sent, in plain JSON.
pub(super) fn plain(item: &Value) -> Item {
    item.as_object().unwrap().iter().map(|(name, value)| (name.clone(), plain_value(value))).collect()
}

pub(super) fn answer(status: u16, body: &Value) -> WireAnswer {
    WireAnswer { status, body: body.to_string() }
}

/// What a call before the one that is judged is answered with.
pub(super) fn read(item: &Item) -> WireAnswer {
    answer(200, &json!({ "Item": wire(item) }))
}

pub(super) fn written(item: &Item) -> WireAnswer {
    answer(200, &json!({ "Attributes": wire(item) }))
}

pub(super) fn refused(item: &Item) -> WireAnswer {
    let kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
    answer(400, &json!({ "__type": kind, "message": "refused", "Item": wire(item) }))
}

/// What a call is answered with that DynamoDB cannot make.
pub(super) fn unreadable() -> WireAnswer {
    let kind = "com.amazon.coral.validate#ValidationException";
    answer(400, &json!({ "__type": kind, "message": "no such expression" }))
}

/// What a look for game servers is answered with: an index that shows one, and its item.
pub(super) fn listed(server: &Item) -> [WireAnswer; 2] {
    let key = json!({ "server": wire(server)["server"] });
    let batch = json!({ "Responses": { table_names().servers: [wire(server)] }, "UnprocessedKeys": {} });
    [answer(200, &json!({ "Items": [key], "Count": 1, "ScannedCount": 1 })), answer(200, &batch)]
}

/// One item's part of a call.
pub(super) struct Part {
    pub(super) table: Table,
    pub(super) table_name: String,
    pub(super) key: Item,
    pub(super) write: Write,
}

fn contents(body: &mut Value) -> Vec<&mut Value> {
    if body.get("TransactItems").is_none() {
        return vec![body];
    }
    let parts = body["TransactItems"].as_array_mut().unwrap();
    parts.iter_mut().map(|part| part.as_object_mut().unwrap().values_mut().next().unwrap()).collect()
}

fn part(content: &Value) -> Part {
    let names = table_names();
    let table_name = content["TableName"].as_str().unwrap().to_owned();
    let tables = [
        (names.lobbies, Table::Lobbies, "lobby_id"),
        (names.servers, Table::Servers, "server"),
        (names.ledger, Table::Ledger, "pk"),
    ];
    let (_, table, key_name) = tables.into_iter().find(|(name, ..)| *name == table_name).unwrap();
    let update = content.get("UpdateExpression").map_or(PUT, |update| update.as_str().unwrap());
    let write = Write::of(table, update).unwrap_or_else(|| panic!("{update} is none of the writes"));
    let item = plain(content.get("Key").unwrap_or_else(|| &content["Item"]));
    let key = item.into_iter().filter(|(name, _)| name == key_name).collect();
    Part { table, table_name, key, write }
}

/// The parts of a call, in its order.
pub(super) fn parts(call: &Call) -> Vec<Part> {
    let mut body: Value = serde_json::from_slice(&call.body).unwrap();
    contents(&mut body).into_iter().map(|content| part(content)).collect()
}

/// A difference from the call that the store sends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Removes a clause of the condition, in each of its numbered forms.
    Clause(String),
    /// Removes one of its changes, likewise.
    Action(String),
    /// Adds to a number, by 1 or -1; by 0, replaces a text or flag.
    Value(String, i64),
    /// Replaces one attribute with another.
    Attribute(&'static str, &'static str),
    /// With an attribute of the item that it puts left out.
    Field(String),
}

impl Change {
    /// Whether it is known as `name`: with its sign, where a number is changed one way only.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.to_string() == name || matches!(self, Self::Value(value, _) if value == name)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clause(text) | Self::Action(text) | Self::Field(text) => f.write_str(text),
            Self::Value(name, step) => write!(f, "{name} {step:+}"),
            Self::Attribute(name, other) => write!(f, "{name} is {other}"),
        }
    }
}

/// Attributes that are easily taken for each other.
const ALIKE: [(&str, &str); 9] = [
    ("#reserved", "connected"),
    ("#connected", "reserved"),
    ("#lease_until", "created_at"),
    ("#max_players", "max_players_direct"),
    ("#used", "allotted"),
    ("#allotted", "used"),
    ("#capacity", "cap_checked"),
    ("#lease_until", "beat_at"),
    ("#opened_at", "positions"),
];

/// Every change that a call can have, each with the write that it changes.
pub(super) fn changes(call: &Call) -> Vec<(Write, Change)> {
    let mut body: Value = serde_json::from_slice(&call.body).unwrap();
    let mut changes = Vec::new();
    for content in contents(&mut body) {
        let write = part(content).write;
        let text = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or_default();
        let object = |name: &str| content.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let condition = text("ConditionExpression");
        let clauses =
            joined(condition, " AND ").into_iter().map(|clause| Change::Clause(normalized(&clause)));
        let actions = actions(text("UpdateExpression"));
        let actions = actions.into_iter().map(|action| Change::Action(normalized(&action)));
        changes.extend(clauses.chain(actions).map(|change| (write, change)));
        for (name, value) in object("ExpressionAttributeValues") {
            let is_plain = value.get("S").or_else(|| value.get("BOOL")).is_some();
            let steps: &[i64] =
                if value.get("N").is_some() { &[-1, 1] } else { &[0][..usize::from(is_plain)] };
            changes.extend(steps.iter().map(|step| (write, Change::Value(name.clone(), *step))));
        }
        let names = object("ExpressionAttributeNames");
        let alike = ALIKE.iter().filter(|(name, _)| names.contains_key(*name));
        changes.extend(alike.map(|(name, other)| (write, Change::Attribute(name, other))));
        let fields = object("Item").into_iter().map(|(name, _)| name).filter(|name| name != "lobby_id");
        changes.extend(fields.map(|name| (write, Change::Field(name))));
    }
    changes
}

/// `call` with `change` in its part that is `write`; `None` when it has no such thing.
pub(super) fn changed(call: &Call, write: Write, change: &Change) -> Option<Call> {
    let mut body: Value = serde_json::from_slice(&call.body).unwrap();
    let mut is_changed = false;
    for content in contents(&mut body) {
        if part(content).write == write {
            is_changed |= apply(content.as_object_mut().unwrap(), change);
        }
    }
    is_changed.then(|| Call { operation: call.operation.clone(), body: body.to_string().into_bytes() })
}

fn apply(content: &mut Map<String, Value>, change: &Change) -> bool {
    let text = |content: &Map<String, Value>, name: &str| {
        content.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match change {
        Change::Clause(clause) => {
            let mut clauses = joined(&text(content, "ConditionExpression"), " AND ");
            let count = clauses.len();
            clauses.retain(|other| normalized(other) != *clause);
            match clauses.join(" AND ") {
                none if none.is_empty() => content.remove("ConditionExpression"),
                condition => content.insert("ConditionExpression".to_owned(), json!(condition)),
            };
            clauses.len() < count
        }
        Change::Action(action) => {
            let mut actions = actions(&text(content, "UpdateExpression"));
            let count = actions.len();
            actions.retain(|other| normalized(other) != *action);
            content.insert("UpdateExpression".to_owned(), json!(actions.join(" ")));
            actions.len() < count
        }
        Change::Value(name, step) => {
            let is_head = content.get("Key").is_some_and(|key| {
                let key = key.to_string();
                key.contains("head/") || key.contains("nursery/")
            });
            let values = content.get_mut("ExpressionAttributeValues").and_then(Value::as_object_mut);
            let Some(value) = values.and_then(|values| values.get_mut(name)) else { return false };
            *value = match plain_value(value) {
                Value::Bool(flag) => wire_value(&json!(!flag)),
                Value::String(text) => wire_value(&json!(format!("{text}x"))),
                number => {
                    let old = number.as_i64().unwrap();
                    let tick = i64::try_from(if is_head { HEAD_TICK_MS } else { TICK_MS }).unwrap();
                    // Only times are as large as a tick; a lease of milliseconds is a number of whole ones.
                    wire_value(&json!(old + step * if old >= 1_000 { tick } else { 1 }))
                }
            };
            true
        }
        Change::Attribute(name, other) => {
            let names = content.get_mut("ExpressionAttributeNames").and_then(|names| names.get_mut(*name));
            names.is_some_and(|names| std::mem::replace(names, json!(other)) != json!(other))
        }
        Change::Field(name) => {
            let item = content.get_mut("Item").and_then(Value::as_object_mut);
            item.is_some_and(|item| item.remove(name).is_some())
        }
    }
}

/// What `separator` joins outside of brackets.
fn joined(expression: &str, separator: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in expression.split(separator).filter(|piece| !piece.is_empty()) {
        match pieces.last_mut() {
            Some(last) if last.matches('(').count() > last.matches(')').count() => {
                *last = format!("{last}{separator}{piece}");
            }
            _ => pieces.push(piece.to_owned()),
        }
    }
    pieces
}

/// The changes of an update, each with its keyword.
fn actions(update: &str) -> Vec<String> {
    let (set, remove) = update.split_once("REMOVE ").unwrap_or((update, ""));
    let set = joined(set.trim_start_matches("SET ").trim(), ", ").into_iter().map(|set| format!("SET {set}"));
    set.chain(joined(remove, ", ").into_iter().map(|remove| format!("REMOVE {remove}"))).collect()
}

/// The items of a call, in its order.
pub(super) type Items = Vec<Option<Item>>;

/// A database that makes a call at once.
pub(super) type Database<'a> = &'a dyn Fn(&str, &[u8]) -> WireAnswer;

/// Makes `call` where its items, of `parts`, are `before`; the response, and its items afterwards.
pub(super) fn make(
    on: Database<'_>,
    call: &Call,
    parts: &[Part],
    before: &[Option<Item>],
) -> (WireAnswer, Items) {
    let send = |operation: &str, body: Value| {
        let answer = on(operation, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
        answer.body
    };
    for (Part { table_name, key, .. }, item) in parts.iter().zip(before) {
        match item {
            Some(item) => send("PutItem", json!({ "TableName": table_name, "Item": wire(item) })),
            None => send("DeleteItem", json!({ "TableName": table_name, "Key": wire(key) })),
        };
    }
    let answer = on(&call.operation, &call.body);
    let after = parts.iter().map(|Part { table_name, key, .. }| {
        let key = json!({ "TableName": table_name, "Key": wire(key), "ConsistentRead": true });
        let body: Value = serde_json::from_str(&send("GetItem", key)).unwrap();
        body.get("Item").filter(|item| !item.is_null()).map(plain)
    });
    let after = after.collect();
    (answer, after)
}

/// The positions of the parts that refused a call; none when it was made.
pub(super) fn refusals(answer: &WireAnswer) -> Result<Vec<usize>, String> {
    if answer.status == 200 {
        return Ok(Vec::new());
    }
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let kind = body["__type"].as_str().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    let reasons = body["CancellationReasons"].as_array().cloned().unwrap_or_default();
    match kind {
        "ConditionalCheckFailedException" => Ok(vec![0]),
        "TransactionCanceledException" => {
            let codes = reasons.iter().map(|reason| reason["Code"].as_str().unwrap_or_default());
            let failed = codes.enumerate().filter(|(_, code)| *code == "ConditionalCheckFailed");
            Ok(failed.map(|(at, _)| at).collect())
        }
        _ => Err(format!("no refused condition: {}", answer.body)),
    }
}

/// The link of a store whose calls are judged: calls before the judged one get a prepared response, calls
/// after it get none.
pub(super) struct Capturing {
    pub(super) database: InProcess,
    pub(super) script: Mutex<Script>,
    pub(super) went_on: Arc<Notify>,
}

/// The items of a call's parts, as they are when it arrives.
type ItemsOf = Box<dyn Fn(&[Part]) -> Items + Send>;

/// What happens to the calls of one scene.
pub(super) struct Script {
    pub(super) prior: VecDeque<WireAnswer>,
    pub(super) captured: Option<Call>,
    pub(super) items: ItemsOf,
}

impl fmt::Debug for Capturing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capturing").finish_non_exhaustive()
    }
}

impl Link for Capturing {
    fn carry(&self, call: Call) -> Carried {
        let Script { prior, captured, items } = &mut *self.script.lock().unwrap();
        let answer = prior.pop_front().or_else(|| {
            captured.is_none().then(|| {
                let on = |operation: &str, body: &[u8]| self.database.answer(operation, body);
                let parts = parts(&call);
                let (answer, _) = make(&on, &call, &parts, &items(&parts));
                *captured = Some(call);
                answer
            })
        });
        let went_on = Arc::clone(&self.went_on);
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(answer),
                None => {
                    went_on.notify_one();
                    std::future::pending().await
                }
            }
        })
    }
}

//! DynamoDB under its limits: what the simulated functions talk to, in the wire format, in virtual time.
//!
//! Semantics are those of the requests that Muster sends; a test holds them to the emulator's. On top come
//! the partitions' limits, transactions in two phases, and indexes that show a write later, see
//! [`super::limits`].

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use muster_local::{
    emulator::{
        in_process::WireAnswer,
        link::{Broken, Call, Carried, Link},
    },
    template,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};

use super::{
    expression::{Condition, Placeholders, Update},
    limits::{
        CANCELLED_HOLD_MS, HOLD_MS, INDEX_LAG_MS, INDEX_TAIL_MS, INDEX_TAIL_ONE_IN, READ_UNIT_BYTES,
        TRANSACTION_FACTOR, TRIP_MS, WRITE_UNIT_BYTES,
    },
    table::{IndexWrite, ItemKey, Table},
    traffic::{Asker, Traffic, count, kind},
    value::{Item, Value, size, units},
};

/// A database; clones are handles to the same one.
#[derive(Clone)]
pub struct Database {
    began: Instant,
    state: Arc<Mutex<State>>,
}

/// The way of one asker to it.
#[derive(Debug)]
pub struct Line {
    database: Database,
    asker: Asker,
}

struct State {
    tables: Vec<Table>,
    random: fastrand::Rng,
    conditions: HashMap<String, Arc<Condition>>,
    updates: HashMap<String, Arc<Update>>,
    traffic: BTreeMap<Asker, Traffic>,
    /// Without a network and limits, to be compared with an emulator.
    is_ideal: bool,
    /// How many times longer each trip takes.
    slowness: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Write {
    table_name: String,
    key: Option<Item>,
    item: Option<Item>,
    update_expression: Option<String>,
    condition_expression: Option<String>,
    expression_attribute_names: HashMap<String, String>,
    expression_attribute_values: HashMap<String, Value>,
    return_values: Option<String>,
    return_values_on_condition_check_failure: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    put: Option<Write>,
    update: Option<Write>,
    delete: Option<Write>,
    condition_check: Option<Write>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Transaction {
    transact_items: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Get {
    table_name: String,
    key: Item,
    #[serde(default)]
    consistent_read: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BatchGet {
    request_items: BTreeMap<String, Keys>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Keys {
    keys: Vec<Item>,
    #[serde(default)]
    consistent_read: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct Query {
    table_name: String,
    index_name: Option<String>,
    key_condition_expression: String,
    filter_expression: Option<String>,
    projection_expression: Option<String>,
    expression_attribute_names: HashMap<String, String>,
    expression_attribute_values: HashMap<String, Value>,
    exclusive_start_key: Option<Item>,
    limit: Option<usize>,
    scan_index_forward: Option<bool>,
}

/// A write whose condition holds.
struct Planned {
    table: usize,
    key: ItemKey,
    old: Option<Item>,
    new: Option<Item>,
    units: f64,
    index_writes: Vec<IndexWrite>,
}

/// Why one write is not made.
enum Refused {
    Held,
    Unmet(Option<Item>),
    Hot { kind: String, is_index: bool },
}

/// What became of a call at its arrival.
enum Arrived {
    Answered(WireAnswer),
    /// A transaction that holds its items, and what it is answered; its writes, unless it was cancelled.
    Prepared {
        held: Vec<(usize, ItemKey)>,
        writes: Vec<Planned>,
        answer: WireAnswer,
        is_cancelled: bool,
    },
}

fn error(code: &str, message: &str) -> Json {
    json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message })
}

fn refused(code: &str) -> WireAnswer {
    WireAnswer { status: 400, body: error(code, "refused by the simulation").to_string() }
}

fn answered(answer: &impl Serialize) -> WireAnswer {
    WireAnswer { status: 200, body: serde_json::to_string(answer).expect("an answer serializes") }
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> T {
    serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

fn consumed(table: &str, units: f64) -> Json {
    json!({ "TableName": table, "CapacityUnits": units })
}

impl Database {
    /// An empty database of `tables`, its network seeded.
    #[must_use]
    pub fn new(tables: &[template::Table], seed: u64) -> Self {
        let state = State {
            tables: tables.iter().map(Table::new).collect(),
            random: fastrand::Rng::with_seed(seed),
            conditions: HashMap::new(),
            updates: HashMap::new(),
            traffic: BTreeMap::new(),
            is_ideal: false,
            slowness: 1,
        };
        Self { began: Instant::now(), state: Arc::new(Mutex::new(state)) }
    }

    /// The same without network, limits and lag, which answers as an emulator does.
    #[must_use]
    pub fn ideal(tables: &[template::Table]) -> Self {
        let database = Self::new(tables, 0);
        database.state().is_ideal = true;
        database
    }

    /// Has each trip take `slowness` times as long, as for functions that wait for their turn at a processor.
    pub fn slow_down(&self, slowness: u64) {
        self.state().slowness = slowness;
    }

    /// The way of `asker` to it.
    #[must_use]
    pub fn line(&self, asker: Asker) -> Arc<dyn Link> {
        Arc::new(Line { database: self.clone(), asker })
    }

    /// The calls of `asker` so far.
    #[must_use]
    pub fn traffic(&self, asker: Asker) -> Traffic {
        self.state().traffic.get(&asker).cloned().unwrap_or_default()
    }

    /// Restarts the counts.
    pub fn forget_traffic(&self) {
        self.state().traffic.clear();
    }

    /// Visits every item of a table, without a call.
    pub fn inspect(&self, table: &str, mut look: impl FnMut(&Item)) {
        let state = self.state();
        let table = state.tables.iter().find(|known| known.name == table).expect("a table");
        table.items().for_each(&mut look);
    }

    /// Answers at once, as without limits.
    #[must_use]
    pub fn answer(&self, operation: &str, body: &[u8]) -> WireAnswer {
        let mut state = self.state();
        match state.arrive(Asker::Operator, operation, body, 0) {
            Arrived::Answered(answer) => answer,
            Arrived::Prepared { held, writes, answer, .. } => {
                state.release(&held, writes, 0);
                answer
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a short run")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Link for Line {
    fn carry(&self, call: Call) -> Carried {
        let (database, asker) = (self.database.clone(), self.asker);
        Box::pin(async move { Ok::<_, Broken>(database.carried(asker, call).await) })
    }
}

impl Database {
    async fn carried(self, asker: Asker, call: Call) -> WireAnswer {
        let (there, back) = {
            let mut state = self.state();
            let slowness = state.slowness;
            (state.random.u64(TRIP_MS) * slowness, state.random.u64(TRIP_MS) * slowness)
        };
        sleep(Duration::from_millis(there)).await;
        let arrived = self.state().arrive(asker, &call.operation, &call.body, self.now_ms());
        let answer = match arrived {
            Arrived::Answered(answer) => answer,
            Arrived::Prepared { held, writes, answer, is_cancelled } => {
                let span = if is_cancelled { CANCELLED_HOLD_MS } else { HOLD_MS };
                let hold = Duration::from_millis(self.state().random.u64(span));
                // Continues without a receiver of the response.
                let database = self.clone();
                let release = tokio::spawn(async move {
                    sleep(hold).await;
                    database.state().release(&held, writes, database.now_ms());
                });
                // A cancellation is known before the items hear of it.
                if !is_cancelled {
                    release.await.expect("a release");
                }
                answer
            }
        };
        sleep(Duration::from_millis(back)).await;
        answer
    }
}

impl State {
    fn arrive(&mut self, asker: Asker, operation: &str, body: &[u8], now_ms: u64) -> Arrived {
        self.of(asker).calls += 1;
        match operation {
            "GetItem" => Arrived::Answered(self.get(asker, parsed(body), now_ms)),
            "BatchGetItem" => Arrived::Answered(self.batch_get(asker, parsed(body), now_ms)),
            "Query" => Arrived::Answered(self.query(asker, parsed(body), now_ms)),
            "PutItem" | "UpdateItem" | "DeleteItem" => {
                Arrived::Answered(self.write(asker, parsed(body), now_ms))
            }
            "TransactWriteItems" => self.prepare(asker, parsed(body), now_ms),
            other => panic!("{other} is not simulated"),
        }
    }

    fn of(&mut self, asker: Asker) -> &mut Traffic {
        self.traffic.entry(asker).or_default()
    }

    fn table(&self, name: &str) -> usize {
        self.tables.iter().position(|table| table.name == name).unwrap_or_else(|| panic!("no table {name}"))
    }

    fn condition(&mut self, text: &str) -> Arc<Condition> {
        if !self.conditions.contains_key(text) {
            self.conditions.insert(text.to_owned(), Arc::new(Condition::parse(text)));
        }
        Arc::clone(&self.conditions[text])
    }

    fn update(&mut self, text: &str) -> Arc<Update> {
        if !self.updates.contains_key(text) {
            self.updates.insert(text.to_owned(), Arc::new(Update::parse(text)));
        }
        Arc::clone(&self.updates[text])
    }

    /// What a write would do; spends what a refused one costs.
    fn plan(&mut self, write: &Write, factor: f64, now_ms: u64) -> Result<Planned, Refused> {
        let number = self.table(&write.table_name);
        let condition = write.condition_expression.as_ref().map(|text| self.condition(text));
        let update = write.update_expression.as_ref().map(|text| self.update(text));
        let is_ideal = self.is_ideal;
        let table = &mut self.tables[number];
        let named = write.key.as_ref().or(write.item.as_ref()).expect("a key");
        let key = table.key_of(named);
        let with = Placeholders {
            names: &write.expression_attribute_names,
            values: &write.expression_attribute_values,
        };
        let item_kind = || kind(&write.table_name, &key);
        let place = table.place(&key);
        if place.is_held {
            return Err(Refused::Held);
        }
        let nothing = Item::new();
        let seen = place.item.as_ref().unwrap_or(&nothing);
        let old_units = units(size(seen), WRITE_UNIT_BYTES);
        if condition.is_some_and(|condition| !condition.holds(seen, with)) {
            if !is_ideal && !place.heat.can_write(old_units * factor, now_ms) {
                return Err(Refused::Hot { kind: item_kind(), is_index: false });
            }
            let shown = write.return_values_on_condition_check_failure.as_deref() == Some("ALL_OLD");
            let old = place.item.clone().filter(|_| shown);
            place.heat.write(old_units * factor);
            return Err(Refused::Unmet(old));
        }
        let old = place.item.clone();
        let new = match (&update, &write.item) {
            (Some(update), _) => {
                let base = old.clone().unwrap_or_else(|| table.only_key(named));
                Some(update.applied(&base, with))
            }
            (None, Some(item)) => Some(item.clone()),
            (None, None) => None,
        };
        let new_units = new.as_ref().map_or(1.0, |new| units(size(new), WRITE_UNIT_BYTES));
        let units = old_units.max(new_units) * factor;
        let index_writes = table.index_writes(old.as_ref(), new.as_ref());
        if !is_ideal {
            if !table.place(&key).heat.can_write(units, now_ms) {
                return Err(Refused::Hot { kind: kind(&write.table_name, &key), is_index: false });
            }
            if let Some(index) = table.hot_index(&index_writes, now_ms) {
                return Err(Refused::Hot { kind: format!("index {index}"), is_index: true });
            }
        }
        Ok(Planned { table: number, key, old, new, units, index_writes })
    }

    /// Spends what a write costs that is made; its units.
    fn spend(&mut self, planned: &Planned) -> f64 {
        self.spend_on_item(planned);
        self.tables[planned.table].heat_indexes(&planned.index_writes);
        planned.units + planned.index_writes.iter().map(IndexWrite::units).sum::<f64>()
    }

    /// Spends what a write costs that is only prepared: no index hears of it.
    fn spend_on_item(&mut self, planned: &Planned) -> f64 {
        self.tables[planned.table].place(&planned.key).heat.write(planned.units);
        planned.units
    }

    fn make(&mut self, planned: Planned, now_ms: u64) {
        let Planned { table, key, new, index_writes, .. } = planned;
        let (random, is_ideal) = (&mut self.random, self.is_ideal);
        self.tables[table].put(key, new, index_writes, || {
            let is_tail = random.u64(0..INDEX_TAIL_ONE_IN) == 0;
            let lag = random.u64(if is_tail { INDEX_TAIL_MS } else { INDEX_LAG_MS });
            if is_ideal { now_ms } else { now_ms + lag }
        });
    }

    fn write(&mut self, asker: Asker, write: Write, now_ms: u64) -> WireAnswer {
        let planned = match self.plan(&write, 1.0, now_ms) {
            Ok(planned) => planned,
            Err(refusal) => {
                let key = self.tables[self.table(&write.table_name)]
                    .key_of(write.key.as_ref().or(write.item.as_ref()).expect("a key"));
                let kind = kind(&write.table_name, &key);
                let traffic = self.of(asker);
                return match refusal {
                    Refused::Held => {
                        count(&mut traffic.conflicts, kind);
                        refused("TransactionConflictException")
                    }
                    Refused::Hot { kind, is_index } => {
                        count(&mut traffic.throttles, kind);
                        refused(if is_index {
                            "ProvisionedThroughputExceededException"
                        } else {
                            "ThrottlingException"
                        })
                    }
                    Refused::Unmet(old) => {
                        count(&mut traffic.unmet, kind);
                        traffic.write_units +=
                            old.as_ref().map_or(1.0, |old| units(size(old), WRITE_UNIT_BYTES));
                        let mut body =
                            error("ConditionalCheckFailedException", "The conditional request failed");
                        if let (Some(old), Json::Object(body)) = (old, &mut body) {
                            body.insert("Item".to_owned(), serde_json::to_value(old).expect("JSON"));
                        }
                        WireAnswer { status: 400, body: body.to_string() }
                    }
                };
            }
        };
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Answer<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            attributes: Option<&'a Item>,
            consumed_capacity: Json,
        }
        let units = self.spend(&planned);
        self.of(asker).write_units += units;
        let attributes = match write.return_values.as_deref() {
            None | Some("NONE") => None,
            Some("ALL_NEW") => planned.new.as_ref(),
            Some("ALL_OLD") => planned.old.as_ref(),
            Some(other) => panic!("{other} is not simulated"),
        };
        let answer = answered(&Answer { attributes, consumed_capacity: consumed(&write.table_name, units) });
        self.make(planned, now_ms);
        answer
    }

    /// The first phase: every item agrees, or says why not. Those that agree are held until the second.
    fn prepare(&mut self, asker: Asker, transaction: Transaction, now_ms: u64) -> Arrived {
        let (mut held, mut writes, mut reasons, mut units) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        let mut is_cancelled = false;
        for part in transaction.transact_items {
            let is_check = part.condition_check.is_some();
            let write = part.put.or(part.update).or(part.delete).or(part.condition_check).expect("a write");
            let named = write.key.as_ref().or(write.item.as_ref()).expect("a key");
            let key = self.tables[self.table(&write.table_name)].key_of(named);
            let kind = kind(&write.table_name, &key);
            match self.plan(&write, TRANSACTION_FACTOR, now_ms) {
                Ok(mut planned) => {
                    if is_check {
                        planned.new.clone_from(&planned.old);
                        planned.index_writes.clear();
                    }
                    self.tables[planned.table].place(&planned.key).is_held = true;
                    held.push((planned.table, planned.key.clone()));
                    writes.push(planned);
                    reasons.push(json!({ "Code": "None" }));
                    continue;
                }
                Err(Refused::Held) => {
                    count(&mut self.of(asker).conflicts, kind);
                    reasons
                        .push(json!({ "Code": "TransactionConflict", "Message": "a transaction holds it" }));
                    units += TRANSACTION_FACTOR;
                }
                Err(Refused::Hot { kind, is_index }) => {
                    count(&mut self.of(asker).throttles, kind);
                    let code = if is_index { "ProvisionedThroughputExceeded" } else { "ThrottlingError" };
                    reasons.push(json!({ "Code": code, "Message": "hot" }));
                }
                Err(Refused::Unmet(old)) => {
                    count(&mut self.of(asker).unmet, kind);
                    units += TRANSACTION_FACTOR;
                    let mut reason = json!({ "Code": "ConditionalCheckFailed", "Message": "The conditional request failed" });
                    if let (Some(old), Json::Object(reason)) = (old, &mut reason) {
                        reason.insert("Item".to_owned(), serde_json::to_value(old).expect("JSON"));
                    }
                    reasons.push(reason);
                }
            }
            is_cancelled = true;
        }
        for planned in &writes {
            units += if is_cancelled { self.spend_on_item(planned) } else { self.spend(planned) };
        }
        self.of(asker).write_units += units;
        let answer = if is_cancelled {
            writes.clear();
            let mut body = error("TransactionCanceledException", "Transaction cancelled");
            if let Json::Object(body) = &mut body {
                body.insert("CancellationReasons".to_owned(), Json::Array(reasons));
            }
            WireAnswer { status: 400, body: body.to_string() }
        } else {
            answered(&json!({ "ConsumedCapacity": [consumed("all", units)] }))
        };
        Arrived::Prepared { held, writes, answer, is_cancelled }
    }

    /// The second phase.
    fn release(&mut self, held: &[(usize, ItemKey)], writes: Vec<Planned>, now_ms: u64) {
        for (table, key) in held {
            self.tables[*table].place(key).is_held = false;
        }
        for write in writes {
            self.make(write, now_ms);
        }
    }

    fn get(&mut self, asker: Asker, get: Get, now_ms: u64) -> WireAnswer {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Answer<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            item: Option<&'a Item>,
            consumed_capacity: Json,
        }
        let number = self.table(&get.table_name);
        let is_ideal = self.is_ideal;
        let table = &mut self.tables[number];
        let key = table.key_of(&get.key);
        let place = table.place(&key);
        let cost = read_units(place.item.as_ref().map_or(0, size), get.consistent_read);
        if !is_ideal && !place.heat.read(cost, now_ms) {
            count(&mut self.of(asker).throttles, format!("reading {}", kind(&get.table_name, &key)));
            return refused("ThrottlingException");
        }
        let answer = answered(&Answer {
            item: place.item.as_ref(),
            consumed_capacity: consumed(&get.table_name, cost),
        });
        let traffic = self.of(asker);
        traffic.read_units += cost;
        count(&mut traffic.gets, kind(&get.table_name, &key));
        answer
    }

    fn batch_get(&mut self, asker: Asker, batch: BatchGet, now_ms: u64) -> WireAnswer {
        let (mut responses, mut unprocessed) = (BTreeMap::new(), BTreeMap::new());
        let (mut read_units_spent, mut is_any) = (0.0, false);
        for (name, keys) in batch.request_items {
            let number = self.table(&name);
            let (mut found, mut left) = (Vec::new(), Vec::new());
            for wanted in keys.keys {
                let is_ideal = self.is_ideal;
                let table = &mut self.tables[number];
                let key = table.key_of(&wanted);
                let place = table.place(&key);
                let cost = read_units(place.item.as_ref().map_or(0, size), keys.consistent_read);
                if !is_ideal && !place.heat.read(cost, now_ms) {
                    count(&mut self.of(asker).throttles, format!("reading {}", kind(&name, &key)));
                    left.push(wanted);
                    continue;
                }
                read_units_spent += cost;
                is_any = true;
                found.extend(place.item.clone());
            }
            if !left.is_empty() {
                unprocessed.insert(name.clone(), json!({ "Keys": left }));
            }
            responses.insert(name, found);
        }
        self.of(asker).read_units += read_units_spent;
        if !is_any && !unprocessed.is_empty() {
            return refused("ThrottlingException");
        }
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Answer {
            responses: BTreeMap<String, Vec<Item>>,
            unprocessed_keys: BTreeMap<String, Json>,
            consumed_capacity: Vec<Json>,
        }
        answered(&Answer {
            responses,
            unprocessed_keys: unprocessed,
            consumed_capacity: vec![consumed("all", read_units_spent)],
        })
    }

    fn query(&mut self, asker: Asker, query: Query, now_ms: u64) -> WireAnswer {
        let unsupported = [query.filter_expression.is_some(), query.projection_expression.is_some()];
        assert_eq!(unsupported, [false, false], "neither is simulated");
        assert_ne!(query.scan_index_forward, Some(false), "not simulated");
        let index_name = query.index_name.as_deref().expect("only indexes are queried");
        let condition = self.condition(&query.key_condition_expression);
        let number = self.table(&query.table_name);
        let is_ideal = self.is_ideal;
        let table = &mut self.tables[number];
        let with = Placeholders {
            names: &query.expression_attribute_names,
            values: &query.expression_attribute_values,
        };
        let start = query.exclusive_start_key.map(|start| (table.key_of(&start), start));
        let position = table.indexes.iter().position(|index| index.name == index_name).expect("an index");
        let index = &mut table.indexes[position];
        let partition = condition.demanded(&index.key.partition, with).expect("a partition").to_key();
        let start = start.map(|(key, start)| index.place_of(&start, key));
        let limit = query.limit.unwrap_or(usize::MAX);
        let (found, is_cut) =
            index.query(&partition, start, limit, now_ms, |item| condition.holds(item, with));
        let cost = read_units(found.iter().map(|item| size(item)).sum(), false);
        if !is_ideal && !index.read(&partition, cost, now_ms) {
            count(&mut self.of(asker).throttles, format!("reading index {index_name}"));
            return refused("ProvisionedThroughputExceededException");
        }
        let last = found.last().filter(|_| is_cut).map(|last| {
            let mut key = table.only_key(last);
            let own = &table.indexes[position].key;
            for name in std::iter::once(&own.partition).chain(&own.sort) {
                key.insert(name.clone(), last[name].clone());
            }
            key
        });
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Answer<'a> {
            count: usize,
            scanned_count: usize,
            items: Vec<&'a Item>,
            #[serde(skip_serializing_if = "Option::is_none")]
            last_evaluated_key: Option<Item>,
            consumed_capacity: Json,
        }
        self.of(asker).read_units += cost;
        answered(&Answer {
            count: found.len(),
            scanned_count: found.len(),
            items: found.iter().map(|item| &**item).collect(),
            last_evaluated_key: last,
            consumed_capacity: consumed(&query.table_name, cost),
        })
    }
}

fn read_units(bytes: usize, is_consistent: bool) -> f64 {
    units(bytes, READ_UNIT_BYTES) * if is_consistent { 1.0 } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use harness::{instance::Instance, lobby_host::LobbyHost, virtual_time::virtual_ambient};
    use muster_local::{
        emulator::{in_process::InProcess, link::client_over},
        stack::{TEMPLATE, table_names},
        template::Template,
    };
    use serde_json::json;
    use shared::{
        auth::keys::TokenKeys,
        models::token::{Claims, Credential, CredentialKind, PlayerSeat},
        store::client::Store,
    };

    use super::*;
    use crate::{fleet::GameServer, make_game, scenario::Scenario};

    /// Calls both, and checks that their responses are equal.
    #[derive(Debug)]
    struct Both {
        emulator: InProcess,
        database: Database,
        calls: Mutex<BTreeMap<String, u32>>,
    }

    fn comparable(answer: &WireAnswer) -> (u16, Json) {
        let mut body: Json = serde_json::from_str(&answer.body).unwrap();
        normalize(&mut body);
        (answer.status, body)
    }

    /// Without what is measured or worded, and without the order of a batch.
    fn normalize(value: &mut Json) {
        match value {
            Json::Object(fields) => {
                for name in ["ConsumedCapacity", "message", "Message", "UnprocessedKeys", "__type"] {
                    let dropped = fields.remove(name);
                    if name == "__type"
                        && let Some(Json::String(name)) = dropped
                    {
                        let short = name.rsplit('#').next().unwrap_or_default();
                        fields.insert("error".to_owned(), json!(short));
                    }
                }
                fields.values_mut().for_each(normalize);
                fields.retain(|_, value| !value.is_null());
            }
            Json::Array(values) => {
                values.iter_mut().for_each(normalize);
                values.sort_by_key(ToString::to_string);
            }
            _ => {}
        }
    }

    impl Link for Both {
        fn carry(&self, call: Call) -> Carried {
            let expected = self.emulator.answer(&call.operation, &call.body);
            let simulated = self.database.answer(&call.operation, &call.body);
            let request = String::from_utf8_lossy(&call.body);
            assert_eq!(comparable(&simulated), comparable(&expected), "{} {request}", call.operation);
            *self
                .calls
                .lock()
                .unwrap()
                .entry(format!("{} {}", call.operation, expected.status))
                .or_default() += 1;
            Box::pin(async move { Ok(expected) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_answers_what_the_emulator_answers() {
        const CAPACITY: usize = 3;
        let tables = Template::parse(TEMPLATE).unwrap().tables;
        let both = Arc::new(Both {
            emulator: InProcess::new(&tables).unwrap(),
            database: Database::ideal(&tables),
            calls: Mutex::default(),
        });
        let link: Arc<dyn Link> = both.clone();
        let random = Mutex::new(fastrand::Rng::with_seed(1));
        let ambient =
            virtual_ambient(crate::setting::BEGAN_AT, move |bytes| random.lock().unwrap().fill(bytes));
        let keys = Arc::new(TokenKeys::new(&[7; 32], None).unwrap());
        let store = Store::new(client_over(Arc::clone(&link)), table_names());
        let scenario = Scenario { capacity: u32::try_from(CAPACITY).unwrap(), ..Scenario::QUICK };
        let game = make_game(
            &store,
            &ambient,
            &scenario,
            (&json!({}), &json!({})),
            (crate::scenario::LOBBY_COUNT_MAX, u32::MAX),
        )
        .await;
        let (game_id, namespace_id) = (&game.game.game_id, &game.namespaces[0].namespace_id);
        let token = |kind| keys.issue_credential(kind, &Credential::fresh(game_id, namespace_id, &ambient));
        let (public, server) = (token(CredentialKind::Public), token(CredentialKind::Server));
        for number in 0..3 {
            let server = GameServer::new(number, store.clone(), &keys, &ambient, &server);
            server.register("region-0", 2).await;
        }
        let instances: Vec<_> =
            (0..4).map(|_| Instance::over(client_over(Arc::clone(&link)), &keys, &ambient)).collect();
        let host = LobbyHost::new(store.clone(), &keys, &ambient, game_id.clone());
        let mut seats: Vec<(PlayerSeat, String)> = Vec::new();
        for round in 0..60_usize {
            let body = json!({ "game_modes": ["mode-0"], "regions": ["region-0"] });
            if let Ok(found) = instances[round % instances.len()].find(&public, &body).await {
                let Ok(Claims::Player(seat)) = keys.verify_at_any_age(&found.player.token) else { panic!() };
                seats.push((seat, found.player.token));
            }
            if let Some((seat, token)) = seats.last() {
                let _refused_the_second_time = host.connect(seat, token).await;
            }
            if round % 3 == 2 && !seats.is_empty() {
                let (seat, token) = seats.remove(round % seats.len());
                host.disconnect(&seat, &token).await.unwrap();
            }
            tokio::time::advance(Duration::from_millis(400)).await;
        }
        let calls = both.calls.lock().unwrap();
        for kind in
            ["UpdateItem 200", "UpdateItem 400", "TransactWriteItems 200", "Query 200", "BatchGetItem 200"]
        {
            assert!(calls.contains_key(kind), "{kind} was not tried: {calls:?}");
        }
    }
}

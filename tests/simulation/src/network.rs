//! The link between functions and database in a simulation, and the database's own ways: everything that may
//! go wrong between a call and its answer happens here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::{Client, config::retry::RetryPartition};
use muster_local::{
    emulator::{
        in_process::{InProcess, WireAnswer},
        link::{Broken, Call, Carried, Link, client_over},
    },
    stack::table_names,
};
use serde_json::{Value, json};
use shared::store::client::Store;
use tokio::{
    sync::{Notify, oneshot},
    time::sleep,
};

use super::{
    chance::Chance,
    faults::{Fate, Faults, Loss, Refusal},
    history::History,
    model::{Change, Model},
    trace::Trace,
    wire::{self, Part, Place},
};
use model::conditions::{self, Condition};

/// Milliseconds after which a caller resends a call, and may give it up before it arrives.
const GIVEN_UP_MS: u64 = 1_000;

/// Maximum age of an operation when its suspension ends, in milliseconds: Lambda has killed an older one
/// (`answers.rs`).
const SUSPENDED_UNTIL_MS: u64 = 28_400;

/// Minimum delay of a write that leaves time for other requests to cross it, in milliseconds.
const SOON_MS: u64 = 10;

tokio::task_local! {
    /// The operation that the current task runs.
    pub(crate) static CURRENT: usize;
}

/// Everything that a run knows.
pub(crate) struct State {
    pub(crate) history: History,
    pub(crate) model: Model,
    pub(crate) trace: Trace,
    pub(crate) faults: Faults,
    pub(crate) chance: Chance,
    /// The condition that the run goes without.
    pub(crate) without: Option<Condition>,
    /// The conditions that were sent.
    pub(crate) seen: BTreeSet<Condition>,
    pub(crate) calls: u64,
    /// Servers on demand whose stage changed since somebody looked, and the notice of it.
    pub(crate) stages: Vec<String>,
    pub(crate) stage_changed: Arc<Notify>,
    has_ended: bool,
    known: BTreeSet<Condition>,
    database: InProcess,
    /// Items that a transaction is about to change: until when, and the token that identifies its copies.
    occupied: BTreeMap<Place, (u64, Value)>,
    /// Items that a delayed write under suspicion will change, and when it arrives.
    threatened: Vec<(u64, Place)>,
    /// Notified when such a write is sent and will be slow.
    alarm: Arc<Notify>,
    /// Operations that are or were suspended, each at most once. The value is the length of a suspension that
    /// has not begun, in milliseconds.
    suspended: BTreeMap<usize, Option<u64>>,
    began: tokio::time::Instant,
}

/// A handle to a run's state, which is also its network.
#[derive(Clone)]
pub(crate) struct Network(Arc<Mutex<State>>);

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl State {
    pub(crate) fn new(
        database: InProcess,
        history: History,
        trace: Trace,
        chance: Chance,
        without: Option<Condition>,
    ) -> Self {
        Self {
            history,
            model: Model::default(),
            trace,
            faults: Faults::none(),
            chance,
            without,
            seen: BTreeSet::new(),
            calls: 0,
            stages: Vec::new(),
            stage_changed: Arc::default(),
            has_ended: false,
            known: conditions::all().into_iter().collect(),
            database,
            occupied: BTreeMap::new(),
            threatened: Vec::new(),
            alarm: Arc::default(),
            suspended: BTreeMap::new(),
            began: tokio::time::Instant::now(),
        }
    }

    /// Milliseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds a line to the trace, which ends with the first failure.
    pub(crate) fn note(&mut self, line: &str) {
        let now = self.now();
        if !self.has_ended {
            self.trace.note(now, line);
            self.has_ended = self.model.failure().is_some();
        }
    }

    /// Reads, as stale as the faults have it.
    fn read(&mut self, operation: &str, request: &Value) -> Value {
        let now = self.now();
        let staleness = self.faults.staleness(&mut self.chance);
        match operation {
            "Query" => self.history.query(request, now, staleness, &mut self.chance),
            "GetItem" => {
                let place = wire::place(request["TableName"].as_str().unwrap_or_default(), &request["Key"]);
                let item = if request["ConsistentRead"] == json!(true) {
                    self.history.current(&place)
                } else {
                    self.history.as_of(&place, now.saturating_sub(staleness.read_ms))
                };
                item.map_or_else(|| json!({}), |item| json!({ "Item": *item }))
            }
            "BatchGetItem" => self.read_batch(request, now, staleness.read_ms),
            other => panic!("the simulation has no {other}"),
        }
    }

    fn read_batch(&mut self, request: &Value, now: u64, stale_ms: u64) -> Value {
        let (mut responses, mut unprocessed) = (json!({}), json!({}));
        for (table, requested) in request["RequestItems"].as_object().expect("tables") {
            let mut keys = requested["Keys"].as_array().cloned().unwrap_or_default();
            if self.faults.leaves_unprocessed(&mut self.chance) {
                let done = self.chance.below(keys.len() + 1);
                let rest = keys.split_off(done);
                if !rest.is_empty() {
                    unprocessed[table] = json!({ "Keys": rest });
                }
            }
            let is_consistent = requested["ConsistentRead"] == json!(true);
            let at = if is_consistent { now } else { now.saturating_sub(stale_ms) };
            let item = |key| self.history.as_of(&wire::place(table, key), at);
            let mut items: Vec<Value> = keys.iter().filter_map(item).map(|item| (*item).clone()).collect();
            // In no order.
            if !items.is_empty() {
                let shift = self.chance.below(items.len());
                items.rotate_left(shift);
            }
            responses[table] = items.into();
        }
        json!({ "Responses": responses, "UnprocessedKeys": unprocessed })
    }

    /// Carries a write out, and has the model see what it changed.
    fn commit(
        &mut self,
        operation: Option<usize>,
        call: &Call,
        request: &Value,
        parts: &[Part],
        is_late: bool,
    ) -> WireAnswer {
        let answer = match &self.without {
            Some(condition) => {
                let mut request = request.clone();
                wire::drop_condition(&call.operation, &mut request, condition);
                self.database.answer(&call.operation, request.to_string().as_bytes())
            }
            None => self.database.answer(&call.operation, &call.body),
        };
        let shown: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        self.trace.digest(&shown);
        if answer.status == 200 {
            let at = self.now();
            let mut changes = Vec::new();
            for part in parts {
                let before = self.history.current(&part.place);
                let after = self.after(part, &shown);
                if before == after {
                    continue;
                }
                let (faults, chance) = (&self.faults, &mut self.chance);
                self.history.commit(&part.place, at, after.clone(), || faults.lag(chance));
                changes.push(Change { at, operation, is_late, part: part.clone(), before, after });
            }
            self.model.committed(&changes, &self.history);
            self.stages.extend(changes.iter().filter_map(Change::streamed));
            if !self.stages.is_empty() {
                self.stage_changed.notify_one();
            }
        }
        answer
    }

    fn after(&self, part: &Part, answer: &Value) -> Option<Arc<Value>> {
        if answer["Attributes"].is_object() {
            return Some(Arc::new(answer["Attributes"].clone()));
        }
        let read = json!({ "TableName": part.place.table, "Key": part.key, "ConsistentRead": true });
        let answer = self.database.answer("GetItem", read.to_string().as_bytes());
        let mut answer: Value = serde_json::from_str(&answer.body).expect("an answer");
        let item = answer["Item"].take();
        item.is_object().then(|| Arc::new(item))
    }

    /// Every write and every condition must be among those that are listed.
    fn recognise(&mut self, parts: &[Part]) {
        for part in parts {
            if wire::known_table(&part.place.table).is_none() || part.place.key.starts_with("statistics/") {
                continue;
            }
            let Some(write) = part.write else {
                let problem = format!("a write that is not listed: {} {}", part.place.table, part.change);
                self.model.fail("completeness", problem);
                continue;
            };
            for clause in &part.clauses {
                let known = self.known.iter().find(|known| known.write == write && known.clause == clause);
                match known.copied() {
                    Some(known) => {
                        self.seen.insert(known);
                    }
                    None => self
                        .model
                        .fail("completeness", format!("a condition that is not listed: {write}: {clause}")),
                }
            }
        }
    }

    /// Whether a transaction is about to change each of `parts`, and whether it is a copy of the one with
    /// `token`.
    fn occupied(&mut self, parts: &[Part], token: &Value) -> (Vec<bool>, bool) {
        let now = self.now();
        self.occupied.retain(|_, (until, _)| *until > now);
        let mut by = parts.iter().filter_map(|part| self.occupied.get(&part.place));
        let is_copy = by.any(|(_, other)| other.is_string() && other == token);
        (parts.iter().map(|part| self.occupied.contains_key(&part.place)).collect(), is_copy)
    }

    /// The items that a delayed write under suspicion will change, each with the time of its arrival in
    /// milliseconds of the run.
    pub(crate) fn threatened(&mut self) -> &[(u64, Place)] {
        let now = self.now();
        self.threatened.retain(|(at, _)| *at > now);
        &self.threatened
    }

    /// Whether `operation` has not been suspended yet and would have time left after `ms` of suspension.
    fn may_be_suspended(&self, operation: usize, ms: u64) -> bool {
        let age = self.now() - self.model.operations[operation].began_at;
        age + ms < SUSPENDED_UNTIL_MS && !self.suspended.contains_key(&operation)
    }

    fn name(&self, operation: Option<usize>) -> String {
        operation.map_or_else(String::new, |operation| self.model.name(operation))
    }
}

impl Network {
    pub(crate) fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The alarm that is notified when a slow write under suspicion is sent.
    pub(crate) fn alarm(&self) -> Arc<Notify> {
        Arc::clone(&self.state().alarm)
    }

    /// How long `operation` must pause from now on; `None` if it is not suspended.
    pub(crate) fn suspension(&self, operation: usize) -> Option<Duration> {
        self.state().suspended.get_mut(&operation)?.take().map(Duration::from_millis)
    }

    /// The run's state, once nothing else holds it.
    pub(crate) fn into_state(self) -> Option<State> {
        Some(Arc::into_inner(self.0)?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn serve(
        self,
        operation: Option<usize>,
        call: Call,
        fate: Fate,
        answer: oneshot::Sender<WireAnswer>,
    ) {
        let request: Value = serde_json::from_slice(&call.body).expect("JSON");
        pause(fate.out_ms).await;
        let answered = if wire::is_write(&call.operation) {
            self.write(operation, &call, &request, &fate).await
        } else {
            self.read(operation, &call, &request, &fate)
        };
        if let Some(again_ms) = fate.again_ms.filter(|_| answered.status == 200) {
            let (network, call) = (self.clone(), call.clone());
            tokio::spawn(async move {
                pause(again_ms).await;
                let fate = Fate { refusal: None, ..fate };
                network.state().note(&format!("the next call is a repetition, {again_ms} ms late"));
                network.write(operation, &call, &request, &fate).await;
            });
        }
        pause(fate.back_ms).await;
        // There is no receiver when the SDK gave up, or its function crashed.
        let _unheard = answer.send(answered);
    }

    fn read(&self, operation: Option<usize>, call: &Call, request: &Value, fate: &Fate) -> WireAnswer {
        let mut state = self.state();
        let answered = match fate.refusal {
            Some(refusal) => refused(refusal, &[]),
            None => {
                let answer = state.read(&call.operation, request);
                state.trace.digest(request);
                state.trace.digest(&answer);
                WireAnswer { status: 200, body: answer.to_string() }
            }
        };
        let name = state.name(operation);
        let what = request["IndexName"].as_str().or(request["TableName"].as_str()).unwrap_or("batch");
        state.note(&format!("{name}   {} {what}: {}", call.operation, outcome(&answered)));
        answered
    }

    async fn write(&self, operation: Option<usize>, call: &Call, request: &Value, fate: &Fate) -> WireAnswer {
        let parts = wire::parts(&call.operation, request);
        let is_transaction = call.operation == "TransactWriteItems";
        let held = {
            let mut state = self.state();
            state.trace.digest(request);
            state.recognise(&parts);
            let (met, is_copy) = state.occupied(&parts, &request["ClientRequestToken"]);
            let conflict = if is_copy { Refusal::InProgress } else { Refusal::Conflict };
            let refusal = fate.refusal.or_else(|| met.contains(&true).then_some(conflict));
            if let Some(refusal) = refusal {
                let conflicts =
                    if met.contains(&true) || !is_transaction { met } else { vec![true; parts.len()] };
                let answered = refused(refusal, if is_transaction { &conflicts } else { &[] });
                let name = state.name(operation);
                state.note(&format!(
                    "{name}   {}: {}",
                    describe(&call.operation, &parts),
                    outcome(&answered)
                ));
                return answered;
            }
            if is_transaction {
                let faults = state.faults.clone();
                let (before, after) = (faults.hold_ms(&mut state.chance), faults.hold_ms(&mut state.chance));
                let until = state.now() + before + after;
                let token = &request["ClientRequestToken"];
                let occupied = parts.iter().map(|part| (part.place.clone(), (until, token.clone())));
                state.occupied.extend(occupied);
                before
            } else {
                0
            }
        };
        pause(held).await;
        let mut state = self.state();
        let is_late = fate.out_ms + held >= GIVEN_UP_MS;
        let answered = state.commit(operation, call, request, &parts, is_late);
        let name = state.name(operation);
        state.note(&format!("{name}   {}: {}", describe(&call.operation, &parts), outcome(&answered)));
        answered
    }
}

impl Link for Network {
    fn carry(&self, call: Call) -> Carried {
        let operation = CURRENT.try_with(|operation| *operation).ok();
        let network = self.clone();
        let fate = {
            let mut state = self.state();
            state.calls += 1;
            let is_write = wire::is_write(&call.operation);
            // A call of no operation creates the world.
            let faults = if operation.is_some() { state.faults.clone() } else { Faults::none() };
            let suspected = if is_write { places_of(&call, &faults.suspects) } else { Vec::new() };
            let mut fate = faults.fate(is_write, !suspected.is_empty(), &mut state.chance);
            if !operation.is_some_and(|operation| state.may_be_suspended(operation, fate.suspended_ms)) {
                fate.suspended_ms = 0;
            }
            let first = state.now() + fate.suspended_ms + fate.out_ms;
            for at in [Some(first), fate.again_ms.map(|again_ms| first + again_ms)].into_iter().flatten() {
                state.threatened.extend(suspected.iter().map(|place| (at, place.clone())));
            }
            if !suspected.is_empty() && fate.out_ms > SOON_MS {
                state.alarm.notify_waiters();
            }
            if let Some(operation) = operation {
                state.model.called(operation);
                if fate.suspended_ms > 0 {
                    let name = state.name(Some(operation));
                    state.note(&format!("{name} is suspended for {} ms", fate.suspended_ms));
                    state.suspended.insert(operation, Some(fate.suspended_ms));
                }
            }
            if fate.loss != Loss::None {
                let name = state.name(operation);
                state.note(&format!("{name}   {}: {:?} lost", call.operation, fate.loss));
            }
            fate
        };
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            pause(fate.suspended_ms).await;
            if fate.loss == Loss::Request {
                std::future::pending::<()>().await;
            }
            tokio::spawn(network.serve(operation, call, fate, sender));
            match (fate.loss, answer.await) {
                (Loss::None, Ok(answer)) => Ok(answer),
                (Loss::Broken, _) => Err(Broken),
                _ => std::future::pending().await,
            }
        })
    }
}

/// The items that `call` changes by one of `writes`.
fn places_of(call: &Call, writes: &[conditions::Write]) -> Vec<Place> {
    if writes.is_empty() {
        return Vec::new();
    }
    let request: Value = serde_json::from_slice(&call.body).expect("JSON");
    let parts = wire::parts(&call.operation, &request).into_iter();
    parts
        .filter(|part| part.write.is_some_and(|write| writes.contains(&write)))
        .map(|part| part.place)
        .collect()
}

async fn pause(ms: u64) {
    if ms > 0 {
        sleep(Duration::from_millis(ms)).await;
    }
}

/// The response of a database that refuses: for a transaction, that its parts conflicted with another one.
fn refused(refusal: Refusal, conflicts: &[bool]) -> WireAnswer {
    let error = |status, code: &str, reasons: Option<Value>| {
        let mut body = json!({
            "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"),
            "message": "injected by the simulation",
        });
        if let Some(reasons) = reasons {
            body["CancellationReasons"] = reasons;
        }
        WireAnswer { status, body: body.to_string() }
    };
    let reasons = |code: &str| {
        let reason = |hit: &bool| json!({ "Code": if *hit { code } else { "None" } });
        Value::Array(conflicts.iter().map(reason).collect())
    };
    match (refusal, conflicts.is_empty()) {
        (Refusal::Throttled, true) => error(400, "ProvisionedThroughputExceededException", None),
        (Refusal::Throttled, false) => {
            error(400, "TransactionCanceledException", Some(reasons("ProvisionedThroughputExceeded")))
        }
        (Refusal::Conflict, true) => error(400, "TransactionConflictException", None),
        (Refusal::Conflict, false) => {
            error(400, "TransactionCanceledException", Some(reasons("TransactionConflict")))
        }
        (Refusal::InProgress, _) => error(400, "TransactionInProgressException", None),
        (Refusal::Internal, _) => error(500, "InternalServerError", None),
    }
}

fn describe(operation: &str, parts: &[Part]) -> String {
    let part = |part: &Part| {
        let name = part.write.map_or_else(|| part.change.clone(), |write| write.name().to_owned());
        let key: String = part.place.key.rsplit('/').next().unwrap_or_default().chars().take(8).collect();
        format!("{name} [{key}]")
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    format!("{} {}", operation.trim_end_matches("Items").trim_end_matches("Item"), parts.join(" + "))
}

fn outcome(answer: &WireAnswer) -> String {
    if answer.status == 200 {
        return "done".to_owned();
    }
    let body: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
    let code = body["__type"].as_str().and_then(|code| code.rsplit('#').next()).unwrap_or("?");
    let reasons: Vec<_> = body["CancellationReasons"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|reason| reason["Code"].as_str().unwrap_or("None"))
        .collect();
    let message =
        if code == "ValidationException" { body["message"].as_str().unwrap_or_default() } else { "" };
    format!("{} {code} {} {message}", answer.status, reasons.join(",")).trim_end().to_owned()
}

/// A store with its own retry quota, as each instance has: by default the SDK shares one across the process.
pub(crate) fn store_over(network: &Network) -> Store {
    let quota = RetryPartition::custom("simulated").build();
    let client = client_over(Arc::new(network.clone()));
    Store::new(Client::from_conf(client.config().to_builder().retry_partition(quota).build()), table_names())
}

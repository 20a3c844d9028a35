//! I15 to I18: game servers on demand.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shared::hosting::launching::Order;

use super::{
    super::{
        history::History,
        wire::{Place, number},
    },
    Change, LAG_MS, Model, Operation, ROOM_AGE_MS,
};
use model::conditions::Write;

/// How long after its deadline a requested server's lobbies may wait.
const GRACE_MS: u64 = 30_000;

/// What the worlds' versions say of them.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) capacity: u64,
    pub(crate) server_count_max: u64,
    /// The build of each version.
    pub(crate) builds: BTreeMap<String, String>,
}

/// What the model knows of them.
#[derive(Debug)]
pub(crate) struct OnDemand {
    rules: Rules,
    /// How many servers counted in each placement pool, each since when.
    counted: BTreeMap<String, Vec<(u64, u64)>>,
    /// Servers requested in each placement pool.
    requested: BTreeMap<String, u64>,
    /// Draws in each nursery of a placement pool, by its first server.
    drawn: BTreeMap<String, BTreeMap<String, u64>>,
    /// The order of each start.
    orders: BTreeMap<String, Order>,
}

impl From<Rules> for OnDemand {
    fn from(rules: Rules) -> Self {
        let (counted, requested) = (BTreeMap::new(), BTreeMap::new());
        Self { rules, counted, requested, drawn: BTreeMap::new(), orders: BTreeMap::new() }
    }
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name]["S"].as_str().unwrap_or_default()
}

/// The placement pool of a server of `namespace`, as region and build.
fn pool_of(key: &str, item: &Value) -> String {
    let namespace = key.split('/').next().unwrap_or_default();
    format!("{namespace}/{}/{}", text(item, "region_id"), text(item, "build_id"))
}

fn has_place(server: &Value) -> bool {
    number(&server["used"]).unwrap_or(0) < number(&server["capacity"]).unwrap_or(0)
}

/// A server that has been as `is_it` wants it in all that `since` passed, or, if it `may_be_new`, in all that
/// passed since its first write.
fn server_since(
    history: &History,
    since: u64,
    may_be_new: bool,
    is_it: impl Fn(&str, &Value) -> bool,
) -> Option<String> {
    let mut keys = history.table("ServersTable").map(|(key, _)| key);
    keys.find(|key| {
        let place = Place { table: "ServersTable".to_owned(), key: (*key).clone() };
        let versions = history.since(&place, since);
        versions.iter().all(|server| server.as_deref().map_or(may_be_new, |server| is_it(key, server)))
    })
    .cloned()
}

/// Whether a server was given up, or has stopped.
pub(super) fn is_over(item: &Value) -> bool {
    matches!(text(item, "stage"), "failed" | "stopping" | "gone")
}

impl Change {
    /// The server, if this is what the stream has looked at: a request, or the end of one.
    pub(crate) fn streamed(&self) -> Option<String> {
        let after = self.after.as_deref().filter(|after| !after["launch"].is_null())?;
        let before = self.before.as_deref().map_or("", |before| text(before, "stage"));
        let is_new = self.before.is_none() && text(after, "stage") == "requested";
        let has_ended = is_over(after) && matches!(before, "requested" | "running");
        (is_new || has_ended).then(|| self.part.place.key.clone())
    }
}

impl Model {
    /// I16 and I18: a server's stage goes one way.
    pub(super) fn check_stage(&mut self, change: &Change) {
        let Some(after) = change.after.as_deref().filter(|after| !after["launch"].is_null()) else { return };
        let (before, after) =
            (change.before.as_deref().map_or("", |item| text(item, "stage")), text(after, "stage"));
        let goes = match before {
            "" => after == "requested",
            "requested" => matches!(after, "requested" | "running" | "failed" | "gone"),
            "running" => matches!(after, "running" | "stopping" | "gone"),
            "stopping" => matches!(after, "stopping" | "gone"),
            over => after == over,
        };
        if !goes {
            let (key, what) = (&change.part.place.key, &change.part.change);
            self.fail("I16", format!("server {key} went from {before:?} to {after:?}: {what}"));
        }
    }

    /// I15: a lobby draws once, and only where no place was free; servers follow from draws alone.
    pub(super) fn check_draw(&mut self, change: &Change, history: &History) {
        if !(change.is(Write::BeginNursery) || change.is(Write::DrawInNursery)) {
            return;
        }
        let (Some(after), Some(pool)) =
            (change.after.as_deref(), change.part.place.key.strip_prefix("nursery/"))
        else {
            return;
        };
        let marks: Vec<&str> = after["drawn"]["L"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|mark| mark["S"].as_str())
            .collect();
        if marks.iter().collect::<BTreeSet<_>>().len() != marks.len() {
            self.fail("I15", format!("a lobby drew twice in the nursery of {pool}"));
        }
        let Some(on_demand) = &mut self.on_demand else { return };
        let draws = on_demand.drawn.entry(pool.to_owned()).or_default();
        draws.insert(text(after, "first").to_owned(), marks.len() as u64);
        if change.is(Write::BeginNursery)
            && let Some(server) = self.just_requested(change, pool, history)
        {
            self.fail("I15", format!("a nursery of {pool} began beside server {server}, just requested"));
        }
        let Some(operation) = change.operation.filter(|_| !change.is_late) else { return };
        if let Some(server) = self.free_in(pool, operation, change.at, history) {
            self.fail(
                "I15",
                format!("a lobby drew in {pool}, though server {server} had a place all the time"),
            );
        }
    }

    /// A server that the nursery which `change` replaces requested, if it had a free place ever since the
    /// operation began: the index need not show its last draws. None once one of its servers is full: then a
    /// place of another belongs to a find that drew it and is late.
    fn just_requested(&self, change: &Change, pool: &str, history: &History) -> Option<String> {
        let (before, operation) = (change.before.as_deref()?, change.operation?);
        let is_recent = number(&before["drawn_at"])? + LAG_MS > self.time(change.at);
        let is_requested =
            |key: &str, server: &Value| pool_of(key, server) == pool && text(server, "stage") == "requested";
        let mut servers = history.table("ServersTable");
        if !is_recent || servers.any(|(key, server)| is_requested(key, server) && !has_place(server)) {
            return None;
        }
        let since = self.operations[operation].began_at;
        let is_it = |key: &str, server: &Value| is_requested(key, server) && has_place(server);
        server_since(history, since, true, is_it)
    }

    /// A server of `pool` with a free place that an operation must have seen.
    fn free_in(&self, pool: &str, operation: usize, until: u64, history: &History) -> Option<String> {
        let seen_by = self.operations[operation].began_at.checked_sub(LAG_MS + ROOM_AGE_MS)?;
        let count = |server: &Value, name: &str| number(&server[name]).unwrap_or(0);
        let is_free = |key: &str, server: &Value| {
            pool_of(key, server) == pool
                && has_place(server)
                && count(server, "used") < count(server, "allotted")
                && count(server, "lease_until") > self.time(until)
                && server["expires_at"].is_null()
        };
        server_since(history, seen_by, false, is_free)
    }

    /// I15 and I18: after each write the ledger counts the servers that are requested and not over; they are
    /// as many as may be, and as the draws need.
    pub(super) fn check_counted(&mut self, history: &History, changes: &[Change]) {
        let Some(on_demand) = &mut self.on_demand else { return };
        let Rules { capacity, server_count_max, .. } = on_demand.rules;
        for change in changes.iter().filter(|change| change.is(Write::RequestServer)) {
            if let Some(item) = &change.after {
                *on_demand.requested.entry(pool_of(&change.part.place.key, item)).or_default() += 1;
            }
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (key, item) in history.table("ServersTable") {
            let counts_there = !item["launch"].is_null() && item["expires_at"].is_null();
            *counts.entry(pool_of(key, item)).or_default() += u64::from(counts_there);
        }
        let mut problems = Vec::new();
        for (pool, count) in counts {
            let (namespace, place) = pool.split_once('/').unwrap_or_default();
            let ledger = Place { table: "LedgerTable".to_owned(), key: format!("allotted/{namespace}") };
            let noted = history.current(&ledger).and_then(|ledger| number(&ledger[place])).unwrap_or(0);
            if noted != count {
                problems
                    .push(("I18", format!("the ledger counts {noted} servers of {pool}, {count} are there")));
            }
            if count > server_count_max {
                problems.push(("I15", format!("{count} of {server_count_max} servers of {pool}")));
            }
            let requested = on_demand.requested.get(&pool).copied().unwrap_or(0);
            let draws = on_demand.drawn.get(&pool).into_iter().flat_map(BTreeMap::values);
            let needed: u64 = draws.map(|draws| draws.div_ceil(capacity)).sum();
            if requested > needed {
                problems
                    .push(("I15", format!("{requested} servers of {pool} were requested, {needed} needed")));
            }
            let history = on_demand.counted.entry(pool).or_default();
            if history.last().is_none_or(|(_, last)| *last != count) {
                history.push((changes.first().map_or(0, |change| change.at), count));
            }
        }
        for (invariant, what) in problems {
            self.fail(invariant, what);
        }
    }

    /// I16: what is ordered was requested when its function began, and is the same at every try.
    pub(crate) fn check_ordered(&mut self, operation: Option<usize>, order: &Order, history: &History) {
        let key = format!("{}/{}", order.namespace_id, order.server_id);
        let start = order.start_id.as_str().to_owned();
        let place = Place { table: "ServersTable".to_owned(), key: key.clone() };
        let began_at = operation.map_or(0, |operation| self.operations[operation].began_at);
        if let Some(item) = history.as_of(&place, began_at)
            && text(&item, "stage") != "requested"
        {
            self.fail("I16", format!("server {key} was started, though it was {}", text(&item, "stage")));
        }
        if history.current(&place).is_none_or(|item| text(&item, "start_id") != start) {
            self.fail("I16", format!("start {start} of server {key} is not that of its record"));
        }
        let Some(on_demand) = &mut self.on_demand else { return };
        let order = Order { handle: None, ..order.clone() };
        let first = on_demand.orders.entry(start.clone()).or_insert_with(|| order.clone());
        if *first != order {
            self.fail("I16", format!("start {start} was ordered in two ways"));
        }
    }

    /// I17: a request that begins after a server's time is not asked to wait for it.
    pub(super) fn check_wait(&mut self, operation: &Operation, lobby: &str) {
        let Some(until) = self.lobbies.get(lobby).and_then(|lobby| lobby.awaited_until) else { return };
        if self.time(operation.began_at) > until + GRACE_MS {
            self.fail("I17", format!("a seat in lobby {lobby} waits on for a server that has not come"));
        }
    }

    /// A request is refused for want of servers only if none more may be requested.
    pub(super) fn check_none_requested(&mut self, operation: &Operation) {
        let Some(on_demand) = &self.on_demand else { return };
        let from = operation.began_at.saturating_sub(ROOM_AGE_MS);
        let namespace = &self.namespaces[operation.namespace];
        let most = |counts: &Vec<(u64, u64)>| {
            let first = counts.iter().rposition(|(since, _)| *since <= from).unwrap_or(0);
            counts.iter().skip(first).map(|(_, count)| *count).max().unwrap_or(0)
        };
        let counted = on_demand.counted.iter().filter(|(pool, _)| pool.starts_with(&namespace.id));
        let most = counted.map(|(_, counts)| most(counts)).max().unwrap_or(0);
        let is_at_cap =
            self.most_live_since(operation.namespace, operation.began_at) >= namespace.lobby_count_max;
        let most_allowed = on_demand.rules.server_count_max;
        if most < most_allowed && !is_at_cap {
            let what = format!("no server was available, though {most} of {most_allowed} were requested");
            self.fail("I15", what);
        }
    }

    /// Whether the lobbies of an operation may run on `server`, as far as its build goes.
    pub(super) fn may_run_on(&self, operation: &Operation, server: &Value) -> bool {
        let Some(on_demand) = &self.on_demand else { return true };
        let versions = &self.namespaces[operation.namespace].versions;
        let mut builds = versions.iter().map(|(_, version)| on_demand.rules.builds.get(version));
        builds.all(|build| build.is_some_and(|build| build == text(server, "build_id")))
    }

    /// Whether lobbies of a namespace's newest version may run on `server`, as far as its build goes.
    pub(crate) fn runs_newest(&self, namespace: usize, server: &Value) -> bool {
        let Some(on_demand) = &self.on_demand else { return true };
        let newest = self.namespaces[namespace].versions.last();
        let build = newest.and_then(|(_, version)| on_demand.rules.builds.get(version));
        build.is_some_and(|build| build == text(server, "build_id"))
    }

    /// I17, I18: after everything settled and all lobbies ended, nobody waits, and nothing runs or counts.
    pub(crate) fn check_at_rest(&mut self, running: &[(String, String)], at: u64, history: &History) {
        let time = self.time(at);
        let waiting = self
            .lobbies
            .values()
            .find(|lobby| lobby.lives() && lobby.awaited_until.is_some_and(|until| until + GRACE_MS < time));
        if let Some(id) = waiting.map(|lobby| lobby.id.clone()) {
            self.fail("I17", format!("lobby {id} waits on for a server that has not come"));
        }
        if let Some((start, server)) = running.first() {
            self.fail("I18", format!("the process of start {start} of server {server} runs on"));
        }
        let left = history
            .table("ServersTable")
            .find(|(_, item)| !item["launch"].is_null() && (!is_over(item) || item["expires_at"].is_null()));
        if let Some((key, item)) = left {
            self.fail("I18", format!("server {key} is {} without lobbies", text(item, "stage")));
        }
    }
}

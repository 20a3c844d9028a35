//! I2: how many lobbies a namespace and its servers hold.

use std::collections::BTreeMap;

use serde_json::Value;
use shared::base::ambient::Timestamp;

use super::{
    super::{
        history::History,
        wire::{Place, number},
    },
    Change, Lobby, Model,
};
use model::conditions::Write;

/// A server's item as the model reads it.
struct Server<'a> {
    item: &'a Value,
}

impl Server<'_> {
    fn count(&self, name: &str) -> u64 {
        number(&self.item[name]).unwrap_or(0)
    }

    fn is_deregistered(&self) -> bool {
        self.count("capacity") == 0
    }
}

impl Model {
    /// After each write: lobbies, servers and ledger agree, and none holds more than it may.
    pub(super) fn check_room(&mut self, history: &History, changes: &[Change]) {
        let mut running: BTreeMap<&str, u64> = BTreeMap::new();
        let mut live: BTreeMap<&str, u64> = BTreeMap::new();
        for lobby in self.lobbies.values().filter(|lobby| lobby.lives()) {
            *running.entry(lobby.server.as_deref().unwrap_or_default()).or_default() += 1;
            *live.entry(&lobby.namespace).or_default() += 1;
        }
        let mut problems = Vec::new();
        let mut allotted: BTreeMap<&str, u64> = BTreeMap::new();
        for (key, item) in history.table("ServersTable") {
            let server = Server { item };
            let (used, runs) = (server.count("used"), running.remove(key.as_str()).unwrap_or(0));
            if used != runs {
                problems.push(format!("server {key} counts {used} lobbies and runs {runs}"));
            }
            if !item["allotted"].is_null() && used > server.count("allotted") {
                problems.push(format!(
                    "server {key} runs {used} lobbies of {} allotted",
                    server.count("allotted")
                ));
            }
            let namespace = key.split('/').next().unwrap_or_default();
            *allotted.entry(namespace).or_default() += server.count("allotted");
        }
        if let Some((server, runs)) = running.iter().next() {
            problems.push(format!("{runs} lobbies run on the unknown server {server}"));
        }
        for namespace in &self.namespaces {
            let live = live.get(namespace.id.as_str()).copied().unwrap_or(0);
            if live > u64::from(namespace.lobby_count_max) {
                problems.push(format!("{live} lobbies of {} live", namespace.lobby_count_max));
            }
            let place = Place { table: "LedgerTable".to_owned(), key: format!("allotted/{}", namespace.id) };
            let Some(ledger) = history.current(&place) else { continue };
            if let Some(count) = number(&ledger["live"])
                && count != live
            {
                problems.push(format!("the ledger counts {count} lobbies, {live} live"));
            }
            if let Some(sum) = number(&ledger["allotted"]) {
                let held = allotted.get(namespace.id.as_str()).copied().unwrap_or(0);
                if sum != held {
                    problems.push(format!("the ledger allots {sum}, servers have {held}"));
                }
                if sum > u64::from(namespace.lobby_count_max) {
                    problems.push(format!("{sum} of {} are allotted", namespace.lobby_count_max));
                }
            }
        }
        let what = changes.iter().map(|change| change.part.change.as_str()).collect::<Vec<_>>().join("; ");
        for problem in problems {
            self.fail("I2", format!("{problem}, after {what}"));
        }
    }

    /// A lobby is created only on a live server that has a free place and runs the lobby's mode.
    pub(super) fn check_place(&mut self, change: &Change, created: &Lobby, history: &History) {
        let time = self.time(change.at);
        let key = created.server.clone().unwrap_or_default();
        let Some(item) = history.current(&Place { table: "ServersTable".to_owned(), key: key.clone() })
        else {
            return self.fail("I2", format!("lobby {} was created on the unknown server {key}", created.id));
        };
        // The transaction's parts change at once: this is the server with the place taken, or without it yet.
        let server = Server { item: &item };
        let began_at =
            change.operation.map_or(time, |operation| self.time(self.operations[operation].began_at));
        if server.count("used") > server.count("capacity") {
            self.fail("I2", format!("server {key} runs {} lobbies", server.count("used")));
        }
        if server.is_deregistered() {
            self.fail("I6", format!("lobby {} was created on a server that deregistered", created.id));
        }
        if server.count("lease_until") <= created.created_at.max(began_at) {
            self.fail("I6", format!("lobby {} was created on a server that is silent", created.id));
        }
        if item["ports"] != created.ports {
            self.fail(
                "I6",
                format!("lobby {} was created with ports of an earlier registration", created.id),
            );
        }
        let region = item["region_id"]["S"].as_str();
        if region != Some(created.region.as_str()) {
            self.fail("I6", format!("lobby {} was created on a server in region {region:?}", created.id));
        }
        if created.lease_until <= began_at {
            self.fail("I6", format!("lobby {} was created with a lapsed lease", created.id));
        }
    }

    /// What a single write may do to a server.
    pub(super) fn check_server(&mut self, change: &Change) {
        let time = self.time(change.at);
        let key = &change.part.place.key;
        let Some(after) = change.after.as_deref() else {
            return self.fail("I2", format!("server {key} was deleted"));
        };
        let after = Server { item: after };
        if change.is(Write::HideServer) && after.count("lease_until") > time {
            self.fail("I10", format!("server {key} was hidden, though it lives"));
        }
        if after.item["server"]["S"].as_str() != Some(key) || after.item["ports"].is_null() {
            self.fail("I2", format!("server {key} was made by {}", change.part.change));
        }
        let is_early = after.count("free_from") <= time && after.count("ranked_at") > time;
        let is_in_index =
            !after.item["placement_pool"].is_null() && after.count("free_from") <= Timestamp::NEVER.0;
        if is_in_index && !after.item["expires_at"].is_null() {
            self.fail("I14", format!("server {key} is let go, and in the index"));
        }
        let shows = change
            .before
            .as_deref()
            .is_none_or(|before| number(&before["free_from"]) != number(&after.item["free_from"]));
        if is_early && shows && after.is_deregistered() {
            self.fail("I6", format!("server {key} is in sight, though it deregistered"));
        }
        let Some(before) = change.before.as_deref().map(|item| Server { item }) else { return };
        if before.is_deregistered() && !after.is_deregistered() && !change.is(Write::PutServer) {
            self.fail("I10", format!("server {key} came back without registering"));
        }
        if change.is(Write::Heartbeat) && before.is_deregistered() && before.count("used") == 0 {
            self.fail("I10", format!("server {key} sent a heartbeat, though it deregistered"));
        }
        if change.is(Write::Heartbeat) && after.count("lease_until") < before.count("lease_until") {
            self.fail("I10", format!("a beat shortened the lease of server {key}"));
        }
        let is_let_go = change.is(Write::LetServerGo) || change.is(Write::LetLaunchedGo);
        if is_let_go && (after.count("used") > 0 || !after.is_deregistered()) {
            self.fail("I2", format!("server {key} is let go, though it is needed"));
        }
    }
}

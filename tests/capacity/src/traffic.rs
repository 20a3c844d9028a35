//! Calls of DynamoDB by their origin, and refusals.

use std::collections::BTreeMap;

/// The origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// The setup of the scenario.
    Operator,
    /// Instances of find.
    Find,
    /// Lobby servers: players connected and disconnected, lobbies ended with their last.
    LobbyServer,
    /// Game servers: heartbeats.
    GameServer,
}

/// Of one asker.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Calls, those repeated by the SDK too.
    pub calls: u64,
    /// Read units.
    pub read_units: f64,
    /// Write units, of indexes and of refused conditions too.
    pub write_units: f64,
    /// Reads of one item, by its kind.
    pub gets: BTreeMap<String, u64>,
    /// Refusals of a partition, by what was hot.
    pub throttles: BTreeMap<String, u64>,
    /// Transactions cancelled, and plain writes refused, because another transaction held an item, by which.
    pub conflicts: BTreeMap<String, u64>,
    /// Failed conditions, by the item's kind.
    pub unmet: BTreeMap<String, u64>,
}

/// What kind of item a key names: a table's, but in the ledger each kind by itself.
#[must_use]
pub fn kind(table: &str, key: &str) -> String {
    match key.split_once('/') {
        Some((kind, _)) if table == "LedgerTable" => format!("ledger {kind}"),
        _ => table.trim_end_matches("Table").to_lowercase(),
    }
}

/// Counts one of `kind`.
pub fn count(counts: &mut BTreeMap<String, u64>, kind: String) {
    *counts.entry(kind).or_default() += 1;
}

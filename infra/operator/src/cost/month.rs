//! The items of a month's bill: how much of each, and what that costs.
//!
//! An estimate is what one visit and one heartbeat were counted to use, times their number in a month, and
//! what a stage consists of. `cargo bench --bench cost` counts both and writes `counted.json`.

use std::collections::BTreeMap;

use clap::ValueEnum;
use muster_console::prices::{
    ALARM_METRICS, API_REQUESTS, BACKUP_GB, DASHBOARDS, DATA_SENT_GB, KEY_REQUESTS, KEYS, LAMBDA_GB_SECONDS,
    LAMBDA_REQUESTS, LOG_GB_KEPT, LOG_GB_WRITTEN, METRICS, Price, READ_UNITS, SECRETS, TABLE_GB, WRITE_UNITS,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Hours of a month.
pub const HOURS: f64 = 730.0;
/// Days of a month.
pub const DAYS: f64 = HOURS / 24.0;
/// Seconds of an hour.
const HOUR_SECS: f64 = 3_600.0;
/// Seconds between two heartbeats of a game server, unless others are given: as the example has them.
pub const HEARTBEAT_SECS: u32 = 30;
/// Bytes of a GB.
pub const GB: f64 = 1e9;
/// How much of a log is left after compression, as AWS's own calculator assumes.
pub const COMPRESSED: f64 = 0.15;
/// The share of requests that are the first of their instance. AWS says that usually less than one in a
/// hundred is.
const COLD_STARTS: f64 = 0.01;
/// Days from a visit to the deletion of its items: they expire within hours, and DynamoDB deletes what has
/// expired within a few days.
const ITEM_DAYS: f64 = 3.0;

/// Visits a month in the table.
pub const VISITS: [u64; 4] = [0, 100_000, 1_000_000, 10_000_000];
/// Game servers in the table.
pub const SERVERS: [u64; 3] = [1, 5, 20];

/// How a stage is used in a month.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Visits.
    pub visits: u64,
    /// Game servers, all month.
    pub servers: u64,
    /// Seconds between two heartbeats of each.
    pub heartbeat: u32,
}

/// Something that AWS charges for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Requests to the API.
    ApiRequests,
    /// Data sent.
    DataSent,
    /// Requests to functions.
    LambdaRequests,
    /// Time of functions.
    LambdaTime,
    /// Read units.
    ReadUnits,
    /// Write units.
    WriteUnits,
    /// Logs taken in.
    LogsWritten,
    /// Logs kept.
    LogsKept,
    /// The functions' own metrics.
    Metrics,
    /// Metrics that alarms watch.
    Alarms,
    /// Dashboards.
    Dashboards,
    /// The signing key.
    Secrets,
    /// Keys of KMS, besides those that AWS manages.
    Keys,
    /// Requests to KMS.
    KeyRequests,
    /// Items in tables and indexes.
    Tables,
    /// Point-in-time recovery.
    Backups,
}

/// The items, by columns of the table.
const COLUMNS: [(&str, &[Item]); 9] = [
    ("API", &[Item::ApiRequests]),
    ("data", &[Item::DataSent]),
    ("Lambda", &[Item::LambdaRequests, Item::LambdaTime]),
    ("DynamoDB", &[Item::ReadUnits, Item::WriteUnits]),
    ("logs", &[Item::LogsWritten, Item::LogsKept]),
    ("metrics", &[Item::Metrics]),
    ("alarms", &[Item::Alarms, Item::Dashboards]),
    ("keys", &[Item::Secrets, Item::Keys, Item::KeyRequests]),
    ("backups", &[Item::Tables, Item::Backups]),
];

/// The head of the table.
pub const HEAD: [&str; 12] = [
    "visits", "servers", "API", "data", "Lambda", "DynamoDB", "logs", "metrics", "alarms", "keys", "backups",
    "month",
];

impl Item {
    /// Every item, in the order of the table's columns.
    pub fn all() -> impl Iterator<Item = Self> {
        COLUMNS.iter().flat_map(|(_, items)| *items).copied()
    }

    /// Its name for people, which ends in its unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.described().0
    }

    /// What so many units cost, in dollars.
    #[must_use]
    pub fn dollars(self, units: f64) -> f64 {
        self.described().1.of(units)
    }

    const fn described(self) -> (&'static str, Price) {
        match self {
            Self::ApiRequests => ("HTTP API, requests", API_REQUESTS),
            Self::DataSent => ("data sent, GB", DATA_SENT_GB),
            Self::LambdaRequests => ("Lambda, requests", LAMBDA_REQUESTS),
            Self::LambdaTime => ("Lambda, GB-seconds", LAMBDA_GB_SECONDS),
            Self::ReadUnits => ("DynamoDB, read units", READ_UNITS),
            Self::WriteUnits => ("DynamoDB, write units", WRITE_UNITS),
            Self::LogsWritten => ("logs written, GB", LOG_GB_WRITTEN),
            Self::LogsKept => ("logs kept, GB-months", LOG_GB_KEPT),
            Self::Metrics => ("metrics of functions, months", METRICS),
            Self::Alarms => ("metrics that alarms watch, months", ALARM_METRICS),
            Self::Dashboards => ("dashboards, months", DASHBOARDS),
            Self::Secrets => ("secrets, months", SECRETS),
            Self::Keys => ("KMS keys, months", KEYS),
            Self::KeyRequests => ("KMS, requests", KEY_REQUESTS),
            Self::Tables => ("tables, GB-months", TABLE_GB),
            Self::Backups => ("point-in-time recovery, GB-months", BACKUP_GB),
        }
    }
}

/// How much of each item, or why that is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bill(BTreeMap<Item, Result<f64, String>>);

impl Bill {
    /// Adds units to an item, unless it is known that they cannot be known.
    pub fn add(&mut self, item: Item, units: f64) {
        if let Ok(sum) = self.0.entry(item).or_insert(Ok(0.0)) {
            *sum += units;
        }
    }

    /// Notes why an item is not known.
    pub fn miss(&mut self, item: Item, reason: &str) {
        self.0.insert(item, Err(reason.to_owned()));
    }

    /// Notes why the remaining items are not known.
    pub fn miss_rest(&mut self, reason: &str) {
        for item in Item::all() {
            self.0.entry(item).or_insert_with(|| Err(reason.to_owned()));
        }
    }

    /// The units of an item.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn units(&self, item: Item) -> Result<f64, &str> {
        match self.0.get(&item) {
            Some(Ok(units)) => Ok(*units),
            Some(Err(reason)) => Err(reason),
            None => Err("nothing says"),
        }
    }

    /// What is known of some items costs, in dollars.
    fn dollars_of(&self, items: impl IntoIterator<Item = Item>) -> f64 {
        let known = items.into_iter().filter_map(|item| Some(item.dollars(self.units(item).ok()?)));
        // Not -0.00, which is the sum of nothing.
        known.fold(0.0, |sum, dollars| sum + dollars)
    }

    /// What all that is known costs, in dollars.
    #[must_use]
    pub fn dollars(&self) -> f64 {
        self.dollars_of(Item::all())
    }

    /// Whether every item is known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        Item::all().all(|item| self.units(item).is_ok())
    }

    /// Item by item: its name, its units and what they cost.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 3]> {
        let row = |item: Item| match self.units(item) {
            Ok(units) => [item.name().to_owned(), amount(units), money(item.dollars(units))],
            Err(reason) => [item.name().to_owned(), format!("not read: {reason}"), "?".to_owned()],
        };
        Item::all().map(row).collect()
    }

    /// The same for programs: units and dollars of each item, or why it is not known.
    #[must_use]
    pub fn json(&self) -> Value {
        let entry = |item: Item| match self.units(item) {
            Ok(units) => json!({ "item": item.name(), "units": units, "dollars": item.dollars(units) }),
            Err(reason) => json!({ "item": item.name(), "not_read": reason }),
        };
        Item::all().map(entry).collect()
    }
}

/// A stage of the template.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Stage {
    /// For development.
    Dev,
    /// For players.
    Prod,
}

impl Stage {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dev, Self::Prod];
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// One visit: a player finds a lobby, connects and leaves. Its share of creating and ending the lobby is
    /// in it.
    pub visit: Work,
    /// One heartbeat of a game server of twenty lobbies.
    pub heartbeat: Work,
    /// What each stage consists of.
    pub stages: BTreeMap<Stage, Parts>,
}

/// What requests use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Requests, by operation.
    pub requests: BTreeMap<String, f64>,
    /// Bytes of the bodies of responses.
    pub sent_bytes: f64,
    /// GB-seconds of Lambda.
    pub gb_seconds: f64,
    /// Read units of DynamoDB.
    pub read_units: f64,
    /// Write units of DynamoDB.
    pub write_units: f64,
    /// Bytes of log lines: of functions, of metrics, of the API.
    pub log_bytes: f64,
    /// Lines that count a metric, by `operation/metric`.
    pub metrics: BTreeMap<String, f64>,
    /// Bytes that are left in tables and indexes until they expire.
    pub table_bytes: f64,
    /// Those of them in tables with point-in-time recovery, without indexes.
    pub backup_bytes: f64,
}

/// What a stage consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Metrics that its alarms watch.
    pub alarm_metrics: u32,
    /// Its dashboards.
    pub dashboards: u32,
    /// Its secrets.
    pub secrets: u32,
    /// Days that it keeps logs.
    pub log_days: u32,
}

impl Work {
    /// Adds `other` so many times.
    pub fn add(&mut self, other: &Self, times: f64) {
        for (sum, each) in [
            (&mut self.sent_bytes, other.sent_bytes),
            (&mut self.gb_seconds, other.gb_seconds),
            (&mut self.read_units, other.read_units),
            (&mut self.write_units, other.write_units),
            (&mut self.log_bytes, other.log_bytes),
            (&mut self.table_bytes, other.table_bytes),
            (&mut self.backup_bytes, other.backup_bytes),
        ] {
            *sum += each * times;
        }
        for (sums, counts) in [(&mut self.requests, &other.requests), (&mut self.metrics, &other.metrics)] {
            for (name, count) in counts {
                *sums.entry(name.clone()).or_default() += count * times;
            }
        }
    }

    /// The months for which metrics are charged when this is a month's work: each by the hour in which it is
    /// counted. Requests come by chance, so that an hour that has n on average has none with the probability
    /// e^-n.
    fn months_of_metrics(&self) -> f64 {
        let starts = self.requests.values().map(|requests| requests * COLD_STARTS);
        let counts = self.metrics.values().copied().chain(starts);
        counts.map(|count| 1.0 - (-count / HOURS).exp()).fold(0.0, |sum, months| sum + months)
    }
}

impl Counted {
    /// What is committed.
    #[must_use]
    pub fn committed() -> Self {
        serde_json::from_str(include_str!("counted.json")).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The bill of a month with so many visits and with so many game servers all the time.
    #[must_use]
    pub fn month(&self, stage: Stage, visits: u64, servers: u64) -> Bill {
        self.month_of(stage, Use { visits, servers, heartbeat: HEARTBEAT_SECS })
    }

    /// The bill of a month of this use.
    #[must_use]
    pub fn month_of(&self, stage: Stage, Use { visits, servers, heartbeat }: Use) -> Bill {
        let mut work = Work::default();
        work.add(&self.visit, visits as f64);
        work.add(&self.heartbeat, servers as f64 * HOURS * HOUR_SECS / f64::from(heartbeat));
        let requests = work.requests.values().fold(0.0, |sum, requests| sum + requests);
        let logs = work.log_bytes / GB;
        let stored = |bytes: f64| bytes / GB * ITEM_DAYS / DAYS;
        let parts = self.stages.get(&stage).copied().unwrap_or_default();
        let units = [
            (Item::ApiRequests, requests),
            (Item::DataSent, work.sent_bytes / GB),
            (Item::LambdaRequests, requests),
            (Item::LambdaTime, work.gb_seconds),
            (Item::ReadUnits, work.read_units),
            (Item::WriteUnits, work.write_units),
            (Item::LogsWritten, logs),
            (Item::LogsKept, logs * COMPRESSED * f64::from(parts.log_days) / DAYS),
            (Item::Metrics, work.months_of_metrics()),
            (Item::Alarms, parts.alarm_metrics.into()),
            (Item::Dashboards, parts.dashboards.into()),
            (Item::Secrets, parts.secrets.into()),
            (Item::Keys, 0.0),
            (Item::KeyRequests, requests * COLD_STARTS),
            (Item::Tables, stored(work.table_bytes)),
            (Item::Backups, stored(work.backup_bytes)),
        ];
        Bill(units.map(|(item, units)| (item, Ok(units))).into())
    }

    /// The table of a stage under [`HEAD`]: an idle month, then each number of visits with each of servers.
    #[must_use]
    pub fn table(&self, stage: Stage) -> Vec<[String; 12]> {
        months().map(|(visits, servers)| self.row(stage, visits, servers)).collect()
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self, stage: Stage) -> Value {
        let row = |(visits, servers)| {
            let bill = self.month(stage, visits, servers);
            let columns = COLUMNS
                .iter()
                .map(|(name, items)| ((*name).to_owned(), bill.dollars_of(items.iter().copied()).into()));
            let dollars: Map<String, Value> = columns.collect();
            json!({ "stage": stage, "visits": visits, "servers": servers, "dollars": dollars,
                    "month": bill.dollars() })
        };
        months().map(row).collect()
    }

    fn row(&self, stage: Stage, visits: u64, servers: u64) -> [String; 12] {
        let bill = self.month(stage, visits, servers);
        let [api, data, lambda, dynamodb, logs, metrics, alarms, keys, backups] =
            COLUMNS.map(|(_, items)| money(bill.dollars_of(items.iter().copied())));
        let (visits, servers) = (amount(visits as f64), servers.to_string());
        [
            visits,
            servers,
            api,
            data,
            lambda,
            dynamodb,
            logs,
            metrics,
            alarms,
            keys,
            backups,
            money(bill.dollars()),
        ]
    }
}

/// The months of a table: visits and game servers.
fn months() -> impl Iterator<Item = (u64, u64)> {
    let used = VISITS.into_iter().flat_map(|visits| SERVERS.map(|servers| (visits, servers)));
    std::iter::once((0, 0)).chain(used)
}

/// A number for people: thousands in groups, three decimals for fractions below 1000.
fn amount(units: f64) -> String {
    let text =
        if units.fract() == 0.0 || units >= 1_000.0 { format!("{units:.0}") } else { format!("{units:.3}") };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Dollars for people.
#[must_use]
pub fn money(dollars: f64) -> String {
    format!("{dollars:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Counted {
        let requests = |operation: &str| BTreeMap::from([(operation.to_owned(), 1.0)]);
        Counted {
            visit: Work {
                requests: requests("find-lobby"),
                sent_bytes: 2_000.0,
                read_units: 2.0,
                write_units: 4.0,
                log_bytes: 1_000.0,
                metrics: BTreeMap::from([("find-lobby/LobbyFound".to_owned(), 1.0)]),
                ..Work::default()
            },
            heartbeat: Work { requests: requests("heartbeat-server"), gb_seconds: 0.5, ..Work::default() },
            stages: BTreeMap::from([
                (Stage::Dev, Parts { secrets: 1, log_days: 7, ..Parts::default() }),
                (Stage::Prod, Parts { alarm_metrics: 38, dashboards: 1, secrets: 1, log_days: 90 }),
            ]),
        }
    }

    #[test]
    fn an_idle_stage_costs_what_it_consists_of() {
        let month = |stage| money(counted().month(stage, 0, 0).dollars());
        assert_eq!([month(Stage::Dev), month(Stage::Prod)], ["0.40", "7.20"]);
    }

    #[test]
    fn a_month_is_the_work_of_its_visits_and_heartbeats() {
        let bill = counted().month(Stage::Prod, 1_000_000, 2);
        let units = |item| bill.units(item).unwrap();
        let heartbeats = 2.0 * 87_600.0;
        assert_eq!(units(Item::ApiRequests), 1_000_000.0 + heartbeats);
        assert_eq!(units(Item::LambdaTime), 0.5 * heartbeats);
        assert_eq!(
            [units(Item::ReadUnits), units(Item::WriteUnits), units(Item::LogsWritten)],
            [2e6, 4e6, 1.0]
        );
        assert!((units(Item::LogsKept) - 0.15 * 90.0 / DAYS).abs() < 1e-9);
        let frequent = Use { visits: 1_000_000, servers: 2, heartbeat: 5 };
        let frequent = counted().month_of(Stage::Prod, frequent).units(Item::ApiRequests).unwrap();
        assert_eq!(frequent, 1_000_000.0 + 6.0 * heartbeats);
        let [_, _, api, data, _, dynamodb, logs, .., sum] = counted().row(Stage::Prod, 1_000_000, 2);
        assert_eq!([api.as_str(), &data, &dynamodb, &logs], ["1.18", "0.18", "2.75", "0.51"]);
        assert_eq!(sum, money(bill.dollars()));
    }

    #[test]
    fn a_metric_is_charged_for_the_hours_in_which_it_is_counted() {
        let months = |visits| counted().month(Stage::Dev, visits, 0).units(Item::Metrics).unwrap();
        assert_eq!(months(0), 0.0);
        // One find counts in one hour of 730.
        assert!((months(1) * HOURS - 1.0).abs() < 0.02, "{}", months(1));
        // Finds and their cold starts in every hour.
        assert!((months(100_000_000) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_read_is_said_and_not_summed() {
        let mut bill = Bill::default();
        bill.add(Item::Secrets, 1.0);
        bill.miss(Item::Alarms, "AccessDenied: no");
        bill.add(Item::Alarms, 5.0);
        bill.miss_rest("the stack is not listed");
        assert!(!bill.is_whole());
        assert_eq!(money(bill.dollars()), "0.40");
        let rows = bill.rows();
        let row = |name: &str| rows.iter().find(|row| row[0].starts_with(name)).unwrap();
        assert_eq!(row("metrics that alarms watch")[1..], ["not read: AccessDenied: no", "?"]);
        assert_eq!(row("HTTP API")[1..], ["not read: the stack is not listed", "?"]);
        assert_eq!(row("secrets")[1..], ["1", "0.40"]);
        assert!(
            bill.json().as_array().unwrap().iter().all(|entry| entry["dollars"] != 0.0),
            "{}",
            bill.json()
        );
    }

    #[test]
    fn every_item_is_in_one_column() {
        let mut items: Vec<_> = Item::all().collect();
        items.dedup();
        assert_eq!(items.len(), 16);
        assert_eq!(HEAD[2..11], COLUMNS.map(|(name, _)| name));
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let text = [0.0, 7.0, 0.12345, 999.5, 1_000.4, 87_600.0, 1e7].map(amount);
        assert_eq!(text, ["0", "7", "0.123", "999.500", "1,000", "87,600", "10,000,000"]);
    }

    #[test]
    fn what_is_committed_is_a_find_a_connect_and_a_leave() {
        let Counted { visit, heartbeat, stages } = Counted::committed();
        let operations: Vec<_> = visit.requests.keys().collect();
        assert_eq!(operations, ["connect-player", "disconnect-player", "find-lobby"]);
        assert!(visit.write_units > 3.0 && heartbeat.write_units > 20.0 && stages.len() == 2);
    }
}

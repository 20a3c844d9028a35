//! The usage of a stack in this month so far, as AWS counted it.
//!
//! If a figure cannot be read, only its own items are unknown, with the reason.

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_cloudformation::types::StackResourceSummary;
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata,
    types::{PointInTimeRecoveryStatus, TableDescription},
};
use shared::{
    base::ambient::{Timestamp, parse_time, time},
    function::metrics::Metric as Counted,
    store::client::TableNames,
};

use super::{
    cloudwatch::{CloudWatch, Metric},
    month::{Bill, COMPRESSED, GB, Item},
};
use crate::{error::CommandError, reach::root_cause, target::Described};

const SECOND_MS: f64 = 1e3;
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The bill of a stack's month up to now.
pub(crate) struct SoFar {
    pub stack: String,
    /// When the month began.
    pub since: Timestamp,
    /// The part of the month that has passed since it began, or since the stack was created.
    pub passed: f64,
    pub bill: Bill,
    /// Hours that game servers on demand ran, whose processes have ended; `None` where that was not read.
    pub server_hours: Option<f64>,
    /// The metrics of CloudWatch that were read.
    pub metrics: usize,
}

/// A month up to now.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    /// When it began.
    since: Timestamp,
    now: Timestamp,
    /// The length of the whole month.
    month: Duration,
    /// The part of it that has passed since it began, or since the stack was created.
    passed: f64,
}

/// A metric whose sum over the month is an item's.
struct Summed {
    item: Item,
    /// Units of the item for one of the metric's.
    units: f64,
    metric: Metric,
}

/// What one run read so far.
struct Reading<'a> {
    stack: &'a Described,
    cloudwatch: CloudWatch<'a>,
    span: Span,
    bill: Bill,
    server_hours: Option<f64>,
    /// Metrics to sum over the month.
    summed: Vec<Summed>,
}

/// Reads the bill of this month so far.
///
/// # Errors
/// [`CommandError::Target`] when the stack is not Muster's.
pub(crate) async fn so_far(stack: &Described, now: Timestamp) -> Result<SoFar, CommandError> {
    let tables = stack.tables()?;
    let created = stack.stack.creation_time().and_then(|at| parse_time(&at.to_string()));
    let span = Span::of(now, created)
        .ok_or_else(|| CommandError::Refused("the clock of this machine is wrong".to_owned()))?;
    let (cloudwatch, (bill, summed)) = (CloudWatch::new(&stack.config, now), Default::default());
    let mut reading = Reading { stack, cloudwatch, span, bill, server_hours: None, summed };
    reading.tables(tables).await;
    reading.keys();
    let rest = match resources(stack).await {
        Ok(resources) => {
            reading.resources(&resources).await;
            "the stack has no such part".to_owned()
        }
        Err(reason) => reason,
    };
    reading.sums().await;
    let metrics = reading.cloudwatch.metrics();
    let (mut bill, server_hours) = (reading.bill, reading.server_hours);
    bill.miss_rest(&rest);
    Ok(SoFar {
        stack: stack.name.clone(),
        since: span.since,
        passed: span.passed,
        bill,
        server_hours,
        metrics,
    })
}

impl Reading<'_> {
    fn miss(&mut self, items: &[Item], reason: &str) {
        items.iter().for_each(|item| self.bill.miss(*item, reason));
    }

    /// Adds an item that is charged by the month.
    fn add_monthly(&mut self, item: Item, units: f64) {
        self.bill.add(item, units * self.span.passed);
    }

    fn sum(&mut self, item: Item, units: f64, metric: Metric) {
        self.summed.push(Summed { item, units, metric });
    }

    /// Sizes of tables and indexes, and the metrics of their units: a table's leave its indexes out.
    async fn tables(&mut self, names: TableNames) {
        let client = aws_sdk_dynamodb::Client::new(&self.stack.config);
        let TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, secrets, clients } = names;
        for table in [catalog, tokens, lobbies, lobby_data, servers, ledger, secrets, clients] {
            match client.describe_table().table_name(&table).send().await {
                Ok(answer) => {
                    let bytes = answer.table.map_or(0, |description| self.table(&table, &description));
                    match is_backed_up(&client, &table).await {
                        Ok(is_backed_up) => {
                            self.add_monthly(Item::Backups, if is_backed_up { gb(bytes) } else { 0.0 });
                        }
                        Err(reason) => self.bill.miss(Item::Backups, &reason),
                    }
                }
                Err(error) => {
                    let items = [Item::ReadUnits, Item::WriteUnits, Item::Tables, Item::Backups];
                    self.miss(&items, &reason(&error));
                }
            }
        }
    }

    /// One table, of so many bytes without its indexes.
    fn table(&mut self, table: &str, description: &TableDescription) -> i64 {
        let bytes = description.table_size_bytes().unwrap_or_default();
        self.add_monthly(Item::Tables, gb(bytes));
        let of_table = vec![("TableName", table.to_owned())];
        let mut places = vec![of_table.clone()];
        for index in description.global_secondary_indexes() {
            self.add_monthly(Item::Tables, gb(index.index_size_bytes().unwrap_or_default()));
            let name = index.index_name().unwrap_or_default().to_owned();
            places.push([&of_table[..], &[("GlobalSecondaryIndexName", name)]].concat());
        }
        for dimensions in places {
            for (item, name) in [
                (Item::ReadUnits, "ConsumedReadCapacityUnits"),
                (Item::WriteUnits, "ConsumedWriteCapacityUnits"),
            ] {
                let namespace = "AWS/DynamoDB".to_owned();
                self.sum(item, 1.0, Metric { namespace, name, dimensions: dimensions.clone() });
            }
        }
        bytes
    }

    /// The keys that the stack's parameters name.
    fn keys(&mut self) {
        let parameters = ["SecretsKeyArn", "EnvironmentKeyArn", "LogsKeyArn"].into_iter();
        let keys: BTreeSet<_> = parameters.filter_map(|name| self.stack.parameter(name)).collect();
        self.add_monthly(Item::Keys, keys.len() as f64);
    }

    /// What the stack consists of besides tables, and the metrics of it.
    async fn resources(&mut self, resources: &[StackResourceSummary]) {
        let of = |kind: &str| -> Vec<&str> {
            let found = resources.iter().filter(|resource| resource.resource_type() == Some(kind));
            found.filter_map(|resource| resource.physical_resource_id()).collect()
        };
        for api in of("AWS::ApiGatewayV2::Api") {
            self.sum(Item::ApiRequests, 1.0, metric("AWS/ApiGateway", "Count", "ApiId", api));
            // The bodies of requests are in it, too: AWS counts what it sends by no metric.
            self.sum(Item::DataSent, 1.0 / GB, metric("AWS/ApiGateway", "DataProcessed", "ApiId", api));
        }
        self.functions(&of("AWS::Lambda::Function"));
        self.add_monthly(Item::Dashboards, of("AWS::CloudWatch::Dashboard").len() as f64);
        self.add_monthly(Item::Secrets, of("AWS::SecretsManager::Secret").len() as f64);
        match self.cloudwatch.watched(&of("AWS::CloudWatch::Alarm")).await {
            Ok(metrics) => self.add_monthly(Item::Alarms, metrics as f64),
            Err(reason) => self.bill.miss(Item::Alarms, &reason),
        }
        self.logs(&of("AWS::Logs::LogGroup")).await;
        let functions = resources.iter().filter(|one| one.resource_type() == Some("AWS::Lambda::Function"));
        let operations: Vec<_> =
            functions.filter_map(|function| function.logical_resource_id().map(operation)).collect();
        self.own_metrics(&operations).await;
    }

    fn functions(&mut self, functions: &[&str]) {
        let memory = self.stack.parameter("MemorySize").and_then(|text| text.parse::<f64>().ok());
        for function in functions {
            let of_function = |name| metric("AWS/Lambda", name, "FunctionName", function);
            self.sum(Item::LambdaRequests, 1.0, of_function("Invocations"));
            if let Some(mib) = memory {
                self.sum(Item::LambdaTime, mib / 1_024.0 / SECOND_MS, of_function("Duration"));
            } else {
                self.bill.miss(Item::LambdaTime, "the stack has no parameter MemorySize");
            }
        }
    }

    /// Logs are kept for the days of the parameter, so that what was written within them is still there.
    async fn logs(&mut self, groups: &[&str]) {
        let written: Vec<_> =
            groups.iter().map(|group| metric("AWS/Logs", "IncomingBytes", "LogGroupName", group)).collect();
        for metric in &written {
            self.sum(Item::LogsWritten, 1.0 / GB, metric.clone());
        }
        let days = self.stack.parameter("LogRetentionDays").and_then(|days| days.parse::<u32>().ok());
        let Some(days) = days else {
            return self.bill.miss(Item::LogsKept, "the stack has no parameter LogRetentionDays");
        };
        match self.cloudwatch.sums(&written, self.span.now.before(DAY * days), DAY).await {
            Ok(bytes) => {
                let bytes: f64 = bytes.iter().flatten().sum();
                self.add_monthly(Item::LogsKept, bytes / GB * COMPRESSED);
            }
            Err(reason) => self.bill.miss(Item::LogsKept, &reason),
        }
    }

    /// The functions' own metrics, which are charged by the hour in which they are counted. A cold start is
    /// also a request to KMS, for the function's variables.
    async fn own_metrics(&mut self, operations: &[String]) {
        let namespace = namespace_of(self.stack);
        let totals = Counted::ALL.iter().filter(|counted| counted.has_total()).map(|counted| Metric {
            namespace: namespace.clone(),
            name: counted.name(),
            dimensions: Vec::new(),
        });
        let metrics: Vec<_> = Counted::ALL
            .iter()
            .flat_map(|counted| operations.iter().map(|operation| (counted.name(), operation)))
            .map(|(name, operation)| metric(&namespace, name, "operation", operation))
            .chain(totals)
            .collect();
        match self.cloudwatch.sums(&metrics, self.span.since, HOUR).await {
            Ok(sums) => {
                let hours = sums.iter().map(Vec::len).sum::<usize>() as f64;
                self.bill.add(Item::Metrics, hours * HOUR.as_secs_f64() / self.span.month.as_secs_f64());
                let sum = |counted: Counted| -> f64 {
                    let of_it = metrics.iter().zip(&sums).filter(|(metric, _)| metric.name == counted.name());
                    of_it.flat_map(|(_, counts)| counts).sum()
                };
                self.bill.add(Item::KeyRequests, sum(Counted::ColdStart));
                self.server_hours = Some(sum(Counted::ServerSeconds) / HOUR.as_secs_f64());
            }
            Err(reason) => self.miss(&[Item::Metrics, Item::KeyRequests], &reason),
        }
    }

    /// Adds the sums of the metrics to the bill.
    async fn sums(&mut self) {
        let summed = std::mem::take(&mut self.summed);
        let metrics: Vec<_> = summed.iter().map(|summed| summed.metric.clone()).collect();
        match self.cloudwatch.sums(&metrics, self.span.since, DAY).await {
            Ok(sums) => {
                for (Summed { item, units, .. }, sums) in summed.iter().zip(sums) {
                    self.bill.add(*item, sums.iter().sum::<f64>() * units);
                }
            }
            Err(reason) => summed.iter().for_each(|summed| self.bill.miss(summed.item, &reason)),
        }
    }
}

/// The namespace of the functions' own metrics, as the template has it.
pub(super) fn namespace_of(stack: &Described) -> String {
    format!("Muster/{}", stack.name)
}

async fn is_backed_up(client: &aws_sdk_dynamodb::Client, table: &str) -> Result<bool, String> {
    let answer = client.describe_continuous_backups().table_name(table).send().await;
    let answer = answer.map_err(|error| reason(&error))?.continuous_backups_description;
    let recovery = answer.and_then(|description| description.point_in_time_recovery_description);
    let status = recovery.and_then(|recovery| recovery.point_in_time_recovery_status);
    Ok(status == Some(PointInTimeRecoveryStatus::Enabled))
}

/// What the stack consists of, nested stacks included.
pub(super) async fn resources(stack: &Described) -> Result<Vec<StackResourceSummary>, String> {
    let client = aws_sdk_cloudformation::Client::new(&stack.config);
    let (mut open, mut found) = (vec![stack.name.clone()], Vec::new());
    while let Some(name) = open.pop() {
        let mut pages = client.list_stack_resources().stack_name(name).into_paginator().items().send();
        while let Some(resource) = pages.next().await {
            let resource = resource.map_err(|error| reason(&error))?;
            if resource.resource_type() == Some("AWS::CloudFormation::Stack") {
                open.extend(resource.physical_resource_id().map(ToOwned::to_owned));
            }
            found.push(resource);
        }
    }
    Ok(found)
}

impl Span {
    /// The month of `now`, for a stack that was created at `created`; `None` when the time is out of range.
    fn of(now: Timestamp, created: Option<Timestamp>) -> Option<Self> {
        let date = time(now);
        let (year, month) = (date.get(..4)?.parse::<u32>().ok()?, date.get(5..7)?.parse::<u32>().ok()?);
        let first = |year: u32, month: u32| parse_time(&format!("{year:04}-{month:02}-01T00:00:00Z"));
        let (since, next) = (first(year, month)?, first(year + month / 12, month % 12 + 1)?);
        let month = next.since(since);
        let passed = now.since(created.unwrap_or_default().max(since)).as_secs_f64() / month.as_secs_f64();
        Some(Self { since, now, month, passed })
    }
}

pub(super) fn metric(namespace: &str, name: &'static str, dimension: &'static str, value: &str) -> Metric {
    Metric { namespace: namespace.to_owned(), name, dimensions: vec![(dimension, value.to_owned())] }
}

/// The operation of a function by its name in the template: `find-lobby` of `FindLobbyFunction`.
fn operation(function: &str) -> String {
    let mut name = String::new();
    for letter in function.trim_end_matches("Function").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn gb(bytes: i64) -> f64 {
    bytes as f64 / GB
}

/// Why a call failed.
fn reason<E: ProvideErrorMetadata + std::error::Error>(error: &E) -> String {
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => format!("cannot reach AWS: {}", root_cause(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(now: &str, created: Option<&str>) -> Span {
        let at = |text| parse_time(text).unwrap();
        Span::of(at(now), created.map(at)).unwrap()
    }

    #[test]
    fn a_month_begins_on_its_first_day_in_utc_and_has_its_own_length() {
        for (now, since, passed) in [
            ("2026-11-16T00:00:00Z", "2026-11-01T00:00:00.000Z", 0.5),
            ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00.000Z", 0.0),
            ("2028-02-15T12:00:00Z", "2028-02-01T00:00:00.000Z", 0.5),
            ("2026-12-16T12:00:00Z", "2026-12-01T00:00:00.000Z", 0.5),
        ] {
            let span = span(now, None);
            assert_eq!((time(span.since).as_str(), span.passed), (since, passed), "{now}");
        }
    }

    #[test]
    fn what_is_charged_by_the_month_is_charged_since_the_stack_was_created() {
        let of = |created| span("2026-11-16T00:00:00Z", Some(created)).passed;
        assert_eq!([of("2026-11-13T00:00:00Z"), of("2020-01-01T00:00:00Z")], [0.1, 0.5]);
    }

    #[test]
    fn functions_are_named_after_their_operations() {
        let template = include_str!("../../../../template.yaml");
        let mut found = 0;
        for resource in template.split("\n\n") {
            let Some((head, rest)) = resource.split_once("CodeUri: functions/") else { continue };
            let name = head.lines().find_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
            assert_eq!(name.map(operation).as_deref(), rest.lines().next());
            found += 1;
        }
        assert!(found > 30, "{found}");
    }
}

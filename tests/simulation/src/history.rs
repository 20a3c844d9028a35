//! Every version of every item, so that reads can be answered as DynamoDB may: late from an index, stale from
//! a table.

use std::{collections::BTreeMap, sync::Arc};

use muster_local::template::{Index, Projection, Table};
use serde_json::{Map, Value, json};

use super::{
    chance::Chance,
    wire::{Place, key_attributes, number},
};

/// An item as it was from a time on; nothing when it was not there.
#[derive(Clone, Debug)]
struct Version {
    at: u64,
    /// From when each index of the table shows it.
    visible_at: Vec<u64>,
    item: Option<Arc<Value>>,
}

/// How far reads may lag.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Staleness {
    /// Maximum age of the version that an eventually consistent read returns, in milliseconds.
    pub(crate) read_ms: u64,
    /// Whether an item that moves within an index may appear twice.
    pub(crate) shows_twice: bool,
    /// Entries after which a page ends, when it ends early.
    pub(crate) page: Option<usize>,
}

/// The tables with their past.
#[derive(Debug)]
pub(crate) struct History {
    schemas: BTreeMap<String, Table>,
    items: BTreeMap<String, BTreeMap<String, Vec<Version>>>,
}

impl History {
    pub(crate) fn new(tables: &[Table]) -> Self {
        let schemas = tables.iter().map(|table| (table.logical_id.clone(), table.clone())).collect();
        Self { schemas, items: BTreeMap::new() }
    }

    /// Keeps what was written at `at`; each index shows it after a lag that `lag` gives, never before what
    /// was written earlier.
    pub(crate) fn commit(
        &mut self,
        place: &Place,
        at: u64,
        item: Option<Arc<Value>>,
        mut lag: impl FnMut() -> u64,
    ) {
        let indexes = self.schemas.get(&place.table).map_or(0, |table| table.indexes.len());
        let versions =
            self.items.entry(place.table.clone()).or_default().entry(place.key.clone()).or_default();
        let earlier = versions.last().map(|version| version.visible_at.clone());
        let visible_at = (0..indexes).map(|index| {
            let floor = earlier.as_ref().map_or(0, |times| times[index]);
            (at + lag()).max(floor)
        });
        let visible_at = visible_at.collect();
        versions.push(Version { at, visible_at, item });
    }

    pub(crate) fn current(&self, place: &Place) -> Option<Arc<Value>> {
        self.versions(place).last()?.item.clone()
    }

    /// When the item was last written, and from when every index shows that.
    pub(crate) fn settled_at(&self, place: &Place) -> Option<(u64, u64)> {
        let version = self.versions(place).last()?;
        Some((version.at, version.visible_at.iter().copied().max().unwrap_or(version.at)))
    }

    /// The item as it was at `at`.
    pub(crate) fn as_of(&self, place: &Place, at: u64) -> Option<Arc<Value>> {
        self.versions(place).iter().rev().find(|version| version.at <= at)?.item.clone()
    }

    /// The versions of an item in force at some time from `from` on.
    pub(crate) fn since(&self, place: &Place, from: u64) -> Vec<Option<Arc<Value>>> {
        let versions = self.versions(place);
        let first = versions.iter().rposition(|version| version.at <= from);
        let was_missing = first.is_none().then_some(None);
        let later = versions.iter().skip(first.unwrap_or(0)).map(|version| version.item.clone());
        was_missing.into_iter().chain(later).collect()
    }

    /// The current items of a table.
    pub(crate) fn table(&self, table: &str) -> impl Iterator<Item = (&String, &Arc<Value>)> {
        let items = self.items.get(table).into_iter().flatten();
        items.filter_map(|(key, versions)| Some((key, versions.last()?.item.as_ref()?)))
    }

    fn versions(&self, place: &Place) -> &[Version] {
        self.items.get(&place.table).and_then(|table| table.get(&place.key)).map_or(&[], Vec::as_slice)
    }

    /// Answers a query of an index as it is visible at `now`.
    pub(crate) fn query(
        &self,
        request: &Value,
        now: u64,
        staleness: Staleness,
        chance: &mut Chance,
    ) -> Value {
        let table = &self.schemas[request["TableName"].as_str().expect("a table")];
        let name = request["IndexName"].as_str().expect("only indexes are queried");
        let position = table.indexes.iter().position(|index| index.name == name).expect("a known index");
        let query = Query::read(request, &table.indexes[position]);
        let mut entries: Vec<(u64, String, Value)> = Vec::new();
        for (key, versions) in self.items.get(&table.logical_id).into_iter().flatten() {
            let visible = |version: &&Version| version.visible_at[position] <= now;
            let mut shown: Vec<&Version> = versions.iter().rev().filter(visible).take(2).collect();
            let is_moving = shown.first().is_some_and(|version| now - version.visible_at[position] < 50);
            if !(staleness.shows_twice && is_moving && chance.one_in(3)) {
                shown.truncate(1);
            }
            for item in shown.into_iter().filter_map(|version| version.item.as_ref()) {
                if let Some(sort) = query.matches(item) {
                    entries.push((sort, key.clone(), projected(item, table, &table.indexes[position])));
                }
            }
        }
        entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        entries.dedup();
        if let Some((sort, key)) = &query.after {
            entries.retain(|entry| (entry.0, &entry.1) > (*sort, key));
        }
        let limit = query.limit.min(staleness.page.unwrap_or(usize::MAX));
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let items: Vec<Value> = entries.into_iter().map(|(_, _, item)| item).collect();
        let mut answer = json!({ "Count": items.len(), "ScannedCount": items.len() });
        if let Some(last) = items.last().filter(|_| has_more) {
            let index = &table.indexes[position];
            let names = key_attributes(&table.logical_id).iter().copied();
            let names = names.chain([index.key.partition.as_str()]).chain(index.key.sort.as_deref());
            answer["LastEvaluatedKey"] =
                names.map(|name| (name.to_owned(), last[name].clone())).collect::<Map<_, _>>().into();
        }
        answer["Items"] = items.into();
        answer
    }
}

/// A query of an index by its partition key and, perhaps, an upper bound of its sort key.
struct Query<'a> {
    index: &'a Index,
    partition: &'a Value,
    at_most: Option<u64>,
    after: Option<(u64, String)>,
    limit: usize,
}

impl<'a> Query<'a> {
    fn read(request: &'a Value, index: &'a Index) -> Self {
        let values = &request["ExpressionAttributeValues"];
        let expression = request["KeyConditionExpression"].as_str().expect("a key condition");
        let (mut partition, mut at_most) = (None, None);
        for clause in expression.split(" AND ") {
            if let Some((_, value)) = clause.split_once(" <= ") {
                at_most = number(&values[value]);
            } else if let Some((_, value)) = clause.split_once(" = ") {
                partition = values.get(value);
            }
        }
        let start = &request["ExclusiveStartKey"];
        let sort = index.key.sort.as_deref().unwrap_or_default();
        let table = request["TableName"].as_str().expect("a table");
        let after = number(&start[sort]).map(|sort| (sort, super::wire::place(table, start).key));
        let limit = request["Limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let partition = partition.expect("a partition");
        Self { index, partition, at_most, after, limit: limit.unwrap_or(usize::MAX) }
    }

    /// The entry's sort key, if the item has one and the query's partition matches.
    fn matches(&self, item: &Value) -> Option<u64> {
        let sort = number(&item[self.index.key.sort.as_deref()?])?;
        let is_asked = item[self.index.key.partition.as_str()] == *self.partition
            && self.at_most.is_none_or(|bound| sort <= bound);
        is_asked.then_some(sort)
    }
}

fn projected(item: &Value, table: &Table, index: &Index) -> Value {
    let mut names: Vec<&str> = key_attributes(&table.logical_id).to_vec();
    names.push(&index.key.partition);
    names.extend(index.key.sort.as_deref());
    match &index.projection {
        Projection::All => return item.clone(),
        Projection::KeysOnly => {}
        Projection::Include(others) => names.extend(others.iter().map(String::as_str)),
    }
    let attribute = |name: &str| Some((name.to_owned(), item.get(name)?.clone()));
    Value::Object(names.into_iter().filter_map(attribute).collect())
}

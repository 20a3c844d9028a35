//! A table in memory: its items, and its indexes as they show the items some time after each write.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use muster_local::template::{self, Key, Projection};

use super::{
    heat::Heat,
    limits::WRITE_UNIT_BYTES,
    value::{Item, Value, size, units},
};

/// The key of an item as one text.
pub type ItemKey = String;

/// An item's place, whether there is an item or not.
#[derive(Debug, Default)]
pub struct Place {
    /// The item.
    pub item: Option<Item>,
    /// What its partition may still take.
    pub heat: Heat,
    /// Whether a transaction holds it.
    pub is_held: bool,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    key: Key,
    places: HashMap<ItemKey, Place>,
    /// Its indexes.
    pub indexes: Vec<Index>,
}

/// The sort key of an index's entry; one index never mixes texts and numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl SortKey {
    fn of(value: &Value) -> Self {
        match value {
            Value::S(text) => Self::Text(text.clone()),
            number => Self::Number(number.to_whole()),
        }
    }
}

type Entries = BTreeMap<(SortKey, ItemKey), Arc<Item>>;

/// What an index holds of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    partition: String,
    sort: SortKey,
    projected: Arc<Item>,
}

/// A global secondary index.
#[derive(Debug)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: Key,
    carried: Option<Vec<String>>,
    shown: HashMap<String, Entries>,
    shown_of: HashMap<ItemKey, (String, SortKey)>,
    heats: HashMap<String, Heat>,
    /// Writes that it does not show yet, by when it will.
    pending: BTreeMap<(u64, u64), (ItemKey, Option<Entry>)>,
    last_pending: HashMap<ItemKey, u64>,
    pending_count: u64,
}

/// A write to an index that a write to its table causes.
#[derive(Debug)]
pub struct IndexWrite {
    index: usize,
    entry: Option<Entry>,
    /// Units in each partition of the index.
    costs: Vec<(String, f64)>,
}

impl IndexWrite {
    /// Units in all.
    #[must_use]
    pub fn units(&self) -> f64 {
        self.costs.iter().map(|(_, units)| units).sum()
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(table: &template::Table) -> Self {
        let index = |index: &template::Index| {
            let keys = [Some(&table.key.partition), table.key.sort.as_ref()];
            let own = [Some(&index.key.partition), index.key.sort.as_ref()];
            let keys = keys.into_iter().chain(own).flatten();
            let carried = match &index.projection {
                Projection::All => None,
                Projection::KeysOnly => Some(keys.cloned().collect()),
                Projection::Include(names) => Some(keys.chain(names).cloned().collect()),
            };
            Index {
                name: index.name.clone(),
                key: index.key.clone(),
                carried,
                shown: HashMap::new(),
                shown_of: HashMap::new(),
                heats: HashMap::new(),
                pending: BTreeMap::new(),
                last_pending: HashMap::new(),
                pending_count: 0,
            }
        };
        Self {
            name: table.logical_id.clone(),
            key: table.key.clone(),
            places: HashMap::new(),
            indexes: table.indexes.iter().map(index).collect(),
        }
    }

    /// The key of `item`, or of the item that it is the key of.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn key_of(&self, item: &Item) -> ItemKey {
        let part = |name: &String| item.get(name).unwrap_or_else(|| panic!("{item:?} lacks {name}")).to_key();
        match &self.key.sort {
            None => part(&self.key.partition),
            Some(sort) => format!("{}\u{0}{}", part(&self.key.partition), part(sort)),
        }
    }

    /// Only the key of `item`.
    #[must_use]
    pub fn only_key(&self, item: &Item) -> Item {
        let is_key = |name: &String| *name == self.key.partition || Some(name) == self.key.sort.as_ref();
        item.iter()
            .filter(|(name, _)| is_key(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The place of `key`.
    pub fn place(&mut self, key: &ItemKey) -> &mut Place {
        if !self.places.contains_key(key) {
            self.places.insert(key.clone(), Place::default());
        }
        self.places.get_mut(key).expect("it is there")
    }

    /// Every item there is.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.places.values().filter_map(|place| place.item.as_ref())
    }

    /// What putting `new` in the place of `old` writes to the indexes.
    #[must_use]
    pub fn index_writes(&self, old: Option<&Item>, new: Option<&Item>) -> Vec<IndexWrite> {
        let written = |(number, index): (usize, &Index)| {
            let old = old.and_then(|item| index.entry(item));
            let entry = new.and_then(|item| index.entry(item));
            let cost =
                |entry: &Entry| (entry.partition.clone(), units(size(&entry.projected), WRITE_UNIT_BYTES));
            let costs = match (&old, &entry) {
                (old, new) if old == new => return None,
                // Only what it carries besides its key differs.
                (Some(old), Some(new)) if (&old.partition, &old.sort) == (&new.partition, &new.sort) => {
                    vec![cost(new)]
                }
                (old, new) => old.iter().chain(new).map(cost).collect(),
            };
            Some(IndexWrite { index: number, entry, costs })
        };
        self.indexes.iter().enumerate().filter_map(written).collect()
    }

    /// The index whose partition cannot take its part of `writes`.
    pub fn hot_index(&mut self, writes: &[IndexWrite], now_ms: u64) -> Option<&str> {
        for write in writes {
            let index = &mut self.indexes[write.index];
            for (partition, units) in &write.costs {
                if !index.heat(partition).can_write(*units, now_ms) {
                    return Some(&self.indexes[write.index].name);
                }
            }
        }
        None
    }

    /// Spends what `writes` cost.
    pub fn heat_indexes(&mut self, writes: &[IndexWrite]) {
        for write in writes {
            for (partition, units) in &write.costs {
                self.indexes[write.index].heat(partition).write(*units);
            }
        }
    }

    /// Puts `new` at `key`; the indexes show it each at the time that `visible_ms` says.
    pub fn put(
        &mut self,
        key: ItemKey,
        new: Option<Item>,
        writes: Vec<IndexWrite>,
        mut visible_ms: impl FnMut() -> u64,
    ) {
        for write in writes {
            self.indexes[write.index].write_at(visible_ms(), &key, write.entry);
        }
        self.place(&key).item = new;
    }
}

impl Index {
    fn entry(&self, item: &Item) -> Option<Entry> {
        let Value::S(partition) = item.get(&self.key.partition)? else { return None };
        let sort = match &self.key.sort {
            Some(sort) => SortKey::of(item.get(sort)?),
            None => SortKey::Number(0),
        };
        let projected = match &self.carried {
            None => item.clone(),
            Some(names) => {
                let carried = |name: &String| Some((name.clone(), item.get(name)?.clone()));
                names.iter().filter_map(carried).collect()
            }
        };
        Some(Entry { partition: partition.clone(), sort, projected: Arc::new(projected) })
    }

    fn heat(&mut self, partition: &str) -> &mut Heat {
        if !self.heats.contains_key(partition) {
            self.heats.insert(partition.to_owned(), Heat::default());
        }
        self.heats.get_mut(partition).expect("it is there")
    }

    /// Writes to one item are shown in their order.
    fn write_at(&mut self, visible_ms: u64, key: &ItemKey, entry: Option<Entry>) {
        let last = self.last_pending.entry(key.clone()).or_default();
        *last = visible_ms.max(*last);
        self.pending_count += 1;
        self.pending.insert((*last, self.pending_count), (key.clone(), entry));
    }

    fn catch_up(&mut self, now_ms: u64) {
        while let Some(first) = self.pending.first_entry() {
            if first.key().0 > now_ms {
                break;
            }
            let (key, entry) = first.remove();
            if let Some((partition, sort)) = self.shown_of.remove(&key)
                && let Some(entries) = self.shown.get_mut(&partition)
            {
                entries.remove(&(sort, key.clone()));
            }
            if let Some(Entry { partition, sort, projected }) = entry {
                self.shown_of.insert(key.clone(), (partition.clone(), sort.clone()));
                self.shown.entry(partition).or_default().insert((sort, key), projected);
            }
        }
    }

    /// Up to `limit` entries of `partition` that `is_wanted`, after `start`, by their sort key; those that
    /// follow in the partition after a first one that is not wanted are not, unless none was wanted yet.
    pub fn query(
        &mut self,
        partition: &str,
        start: Option<(SortKey, ItemKey)>,
        limit: usize,
        now_ms: u64,
        is_wanted: impl Fn(&Item) -> bool,
    ) -> (Vec<Arc<Item>>, bool) {
        self.catch_up(now_ms);
        let Some(entries) = self.shown.get(partition) else { return (Vec::new(), false) };
        let start = start.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found: Vec<Arc<Item>> = Vec::new();
        for item in entries.range((start, Bound::Unbounded)).map(|(_, item)| item) {
            if is_wanted(item) {
                found.push(Arc::clone(item));
                if found.len() == limit {
                    return (found, true);
                }
            } else {
                // Wanted are a range's beginning, as of `free_from <= now`: nothing beyond it is.
                break;
            }
        }
        (found, false)
    }

    /// The place of an entry, as a query begins after it.
    #[must_use]
    pub fn place_of(&self, item: &Item, key: ItemKey) -> (SortKey, ItemKey) {
        let sort = self.key.sort.as_ref().and_then(|sort| item.get(sort));
        (sort.map_or(SortKey::Number(0), SortKey::of), key)
    }

    /// Reads `units` of a partition, if they can be had.
    pub fn read(&mut self, partition: &str, units: f64, now_ms: u64) -> bool {
        self.heat(partition).read(units, now_ms)
    }
}

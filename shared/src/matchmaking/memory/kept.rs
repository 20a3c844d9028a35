//! A bounded map of what an instance remembers.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use crate::{base::ambient::Timestamp, matchmaking::limits::LEARNT_AGE_MAX};

/// Entries kept of each kind.
const ENTRIES_MAX: usize = 1_024;

/// Entries by key. An instance can learn all of them again, so when they are too many, all are dropped.
#[derive(Debug)]
pub(in crate::matchmaking) struct Kept<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Kept<K, V> {
    /// Reads or changes the entry of `key`, if there is one.
    pub(super) fn with<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(key).map(change)
    }

    /// Reads or changes the entry of `key`, which is created if there is none.
    pub(super) fn with_new<R>(&self, key: K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        make_space(&mut entries);
        change(entries.entry(key).or_default())
    }

    /// Stores `value` in place of any other.
    pub(super) fn insert(&self, key: K, value: V) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        make_space(&mut entries);
        entries.insert(key, value);
    }

    /// Removes the entries that are not `wanted`.
    pub(super) fn retain(&self, wanted: impl Fn(&V) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, value| wanted(value));
    }

    /// Removes the entry of `key`.
    pub(super) fn remove(&self, key: &K) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

fn make_space<K, V>(entries: &mut HashMap<K, V>) {
    if entries.len() >= ENTRIES_MAX {
        entries.clear();
    }
}

/// Drops what happened more than a second ago, of `times` in order.
pub(super) fn drop_old(times: &mut VecDeque<Timestamp>, now: Timestamp) {
    while times.front().is_some_and(|at| now.since(*at) >= LEARNT_AGE_MAX) {
        times.pop_front();
    }
}

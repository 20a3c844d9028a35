//! What a function instance keeps between requests, with the time at which it was read.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::ambient::Timestamp;

/// A bounded map whose entries carry their age.
pub(crate) struct Aged<K, V> {
    entries: Mutex<HashMap<K, (Timestamp, V)>>,
    entries_max: usize,
}

impl<K: Eq + Hash, V: Clone> Aged<K, V> {
    /// A map of at most `entries_max` entries.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: Mutex::default(), entries_max }
    }

    /// The value of `key`, when it was read less than `age_max` ago.
    pub(crate) fn get(&self, key: &K, age_max: Duration, now: Timestamp) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = entries.get(key)?;
        (now.since(*read_at) < age_max).then(|| value.clone())
    }

    pub(crate) fn put(&self, key: K, value: V, read_at: Timestamp) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.entries_max && !entries.contains_key(&key) {
            // Keys of strangers' choice must not push a real one out for long: everything is read again at most once.
            entries.clear();
        }
        entries.insert(key, (read_at, value));
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl<K, V> fmt::Debug for Aged<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aged").finish_non_exhaustive()
    }
}

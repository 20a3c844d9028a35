//! Values that a function instance keeps between requests, with the times of their reads.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::base::ambient::Timestamp;

/// How long an unused entry is kept, for example one of a version that was replaced.
const UNUSED_MAX: Duration = Duration::from_secs(60);

/// A bounded map whose entries carry their age.
pub(crate) struct Aged<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    entries_max: usize,
}

struct Entry<V> {
    read_at: Timestamp,
    used_at: Timestamp,
    value: V,
}

impl<K: Eq + Hash, V: Clone> Aged<K, V> {
    /// A map of at most `entries_max` entries.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: Mutex::default(), entries_max }
    }

    /// The value of `key`, when it was read less than `age_max` ago.
    pub(crate) fn get(&self, key: &K, age_max: Duration, now: Timestamp) -> Option<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get_mut(key)?;
        entry.used_at = now;
        (now.since(entry.read_at) < age_max).then(|| entry.value.clone())
    }

    pub(crate) fn put(&self, key: K, value: V, read_at: Timestamp) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(&key) {
            entries.retain(|_, entry| read_at.since(entry.used_at) < UNUSED_MAX);
            if entries.len() >= self.entries_max {
                // Clients may choose keys, which must not displace real ones for long: each value is read
                // again at most once.
                entries.clear();
            }
        }
        entries.insert(key, Entry { read_at, used_at: read_at, value });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_for_a_minute_goes_when_something_new_comes() {
        let map = Aged::new(9);
        let at = |seconds: u64| Timestamp(seconds * 1_000);
        for key in ["used", "unused"] {
            map.put(key, (), at(0));
        }
        assert!(map.get(&"used", Duration::MAX, at(40)).is_some());
        map.put("used", (), at(40));
        map.put("soon", (), at(59));
        assert_eq!(map.entries.lock().unwrap().len(), 3);
        map.put("new", (), at(60));
        assert!(map.get(&"unused", Duration::MAX, at(60)).is_none());
        assert!(["used", "soon", "new"].iter().all(|key| map.get(key, Duration::MAX, at(60)).is_some()));
    }
}

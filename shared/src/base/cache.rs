//! What a function instance keeps between requests: bounded maps, whose unused entries go.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::base::ambient::Timestamp;

/// How long an unused entry is kept, for example one of a version that was replaced.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// Entries of a map that names no other limit.
const ENTRIES_MAX: usize = 1_024;

/// A bounded map. An entry that was not used for a minute goes when another comes. An instance can learn all
/// of them again, so when they are too many, all are dropped: clients may choose keys, which must not
/// displace real ones for long.
pub(crate) struct BoundedMap<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    entries_max: usize,
}

struct Entry<V> {
    used_at: Timestamp,
    value: V,
}

impl<K, V> Default for BoundedMap<K, V> {
    fn default() -> Self {
        Self::new(ENTRIES_MAX)
    }
}

impl<K, V> BoundedMap<K, V> {
    /// A map of at most `entries_max` entries.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: Mutex::default(), entries_max }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// Reads or changes the entry of `key`, if there is one. This does not count as a use.
    pub(crate) fn with<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.entries().get_mut(key).map(|entry| change(&mut entry.value))
    }

    /// Reads or changes the entry of `key`, which is created if there is none, and is used at `now`.
    pub(crate) fn with_new<R>(&self, key: K, now: Timestamp, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        let mut entries = self.entries();
        self.make_space(&mut entries, &key, now);
        let entry = entries.entry(key).or_insert_with(|| Entry { used_at: now, value: V::default() });
        entry.used_at = now;
        change(&mut entry.value)
    }

    /// Stores `value` in place of any other, as used at `used_at`.
    pub(crate) fn insert(&self, key: K, used_at: Timestamp, value: V) {
        let mut entries = self.entries();
        self.make_space(&mut entries, &key, used_at);
        entries.insert(key, Entry { used_at, value });
    }

    /// Removes the entry of `key`.
    pub(crate) fn remove(&self, key: &K) {
        self.entries().remove(key);
    }

    /// Removes the entries of keys that `is_one`.
    pub(crate) fn remove_all(&self, is_one: impl Fn(&K) -> bool) {
        self.entries().retain(|key, _| !is_one(key));
    }

    fn make_space(&self, entries: &mut HashMap<K, Entry<V>>, key: &K, now: Timestamp) {
        if entries.contains_key(key) {
            return;
        }
        entries.retain(|_, entry| now.since(entry.used_at) < UNUSED_MAX);
        if entries.len() >= self.entries_max {
            entries.clear();
        }
    }
}

impl<K, V> fmt::Debug for BoundedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedMap").finish_non_exhaustive()
    }
}

/// Values with the times of their reads.
#[derive(Debug)]
pub(crate) struct TimedMap<K, V>(BoundedMap<K, (Timestamp, V)>);

impl<K: Eq + Hash, V: Clone> TimedMap<K, V> {
    /// A map of at most `entries_max` values.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self(BoundedMap::new(entries_max))
    }

    /// The value of `key`, when it was read less than `age_max` ago.
    pub(crate) fn get(&self, key: &K, age_max: Duration, now: Timestamp) -> Option<V> {
        let mut entries = self.0.entries();
        let entry = entries.get_mut(key)?;
        entry.used_at = now;
        let (read_at, value) = &entry.value;
        (now.since(*read_at) < age_max).then(|| value.clone())
    }

    /// Stores `value`, which was read at `read_at`, in place of any other.
    pub(crate) fn put(&self, key: K, value: V, read_at: Timestamp) {
        self.0.insert(key, read_at, (read_at, value));
    }

    /// Drops all values.
    pub(crate) fn clear(&self) {
        self.0.entries().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000)
    }

    #[test]
    fn what_is_not_used_for_a_minute_goes_when_something_new_comes() {
        let map = BoundedMap::default();
        for key in ["used", "replaced", "unused"] {
            map.insert(key, at(0), 0);
        }
        map.with_new("used", at(1), |value| *value += 1);
        map.insert("replaced", at(1), 2);
        assert_eq!(map.with(&"unused", |value| *value), Some(0), "nothing new came");
        map.insert("new", at(60), 3);
        let values = ["used", "replaced", "unused", "new"].map(|key| map.with(&key, |value| *value));
        assert_eq!(values, [Some(1), Some(2), None, Some(3)]);
    }

    #[test]
    fn too_many_entries_are_dropped_together() {
        let map = BoundedMap::new(2);
        for key in ["a", "b", "b"] {
            map.insert(key, at(0), ());
        }
        assert_eq!(map.entries().len(), 2);
        map.insert("c", at(0), ());
        assert_eq!(map.entries().keys().collect::<Vec<_>>(), [&"c"]);
    }

    #[test]
    fn a_value_that_is_read_is_used_however_old_it_is() {
        let map = TimedMap::new(9);
        for key in ["read", "unread"] {
            map.put(key, (), at(0));
        }
        assert_eq!(map.get(&"read", Duration::from_secs(30), at(29)), Some(()));
        assert_eq!(map.get(&"read", Duration::from_secs(30), at(30)), None);
        map.put("new", (), at(60));
        assert_eq!(["read", "unread"].map(|key| map.get(&key, Duration::MAX, at(60))), [Some(()), None]);
    }
}

//! A bounded map of what an instance remembers.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{base::ambient::Timestamp, matchmaking::limits::LEARNT_AGE_MAX};

/// Entries kept of each kind.
const ENTRIES_MAX: usize = 1_024;
/// How long an entry is kept that no find notes again, for example of a version that was replaced.
const UNUSED_MAX: Duration = Duration::from_secs(300);

/// Entries by key, each with the time at which it was last noted. An instance can learn all of them again, so
/// when they are too many, all are dropped.
#[derive(Debug)]
pub(in crate::matchmaking) struct Kept<K, V>(Mutex<HashMap<K, (Timestamp, V)>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Kept<K, V> {
    /// Reads or changes the entry of `key`, if there is one.
    pub(super) fn with<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.entries().get_mut(key).map(|(_, value)| change(value))
    }

    /// Reads or changes the entry of `key`, which is created if there is none.
    pub(super) fn with_new<R>(&self, key: K, now: Timestamp, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        let mut entries = self.entries();
        make_space(&mut entries, &key, now);
        let (noted_at, value) = entries.entry(key).or_default();
        *noted_at = now;
        change(value)
    }

    /// Stores `value` in place of any other, as noted at `noted_at`.
    pub(super) fn insert(&self, key: K, noted_at: Timestamp, value: V) {
        let mut entries = self.entries();
        make_space(&mut entries, &key, noted_at);
        entries.insert(key, (noted_at, value));
    }

    /// Removes the entry of `key`.
    pub(super) fn remove(&self, key: &K) {
        self.entries().remove(key);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<K, (Timestamp, V)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_space<K: Eq + Hash, V>(entries: &mut HashMap<K, (Timestamp, V)>, key: &K, now: Timestamp) {
    if entries.contains_key(key) {
        return;
    }
    entries.retain(|_, (noted_at, _)| now.since(*noted_at) < UNUSED_MAX);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_noted_for_five_minutes_goes_when_something_new_comes() {
        let kept = Kept::default();
        let at = |seconds: u64| Timestamp(seconds * 1_000);
        for key in ["noted", "unused"] {
            kept.insert(key, at(0), 0);
        }
        kept.with_new("noted", at(1), |value| *value += 1);
        kept.insert("new", at(300), 0);
        assert_eq!(
            ["noted", "unused", "new"].map(|key| kept.with(&key, |value| *value)),
            [Some(1), None, Some(0)]
        );
    }
}

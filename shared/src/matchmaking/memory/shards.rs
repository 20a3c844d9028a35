//! Shards of a pool.

use std::time::Duration;

use crate::{base::ambient::Timestamp, matchmaking::limits::LEARNT_AGE_MAX, store::shards::SIGN_KNOWN_FOR};

/// How long finds look into the shards whose sign a look saw, though no look saw it since.
const SEEN_AGE_MAX: Duration = Duration::from_secs(15);
/// How long after learning of shards an instance does not add more: until lobbies have moved there.
const GROWTH_PAUSE: Duration = Duration::from_secs(3);
/// The factor by which a pool whose index was too slow gets more shards.
const GROWTH: u8 = 4;
/// How often an instance checks whether shards are still needed, while finds look at them.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);

/// What to do about a pool's shards before creating a lobby in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::matchmaking) enum Sharding {
    /// Use the first shard.
    Unneeded,
    /// Use any of so many.
    Known(u8),
    /// Write the sign of so many first.
    Sign(u8),
}

/// What an instance knows of the shards of one pool.
#[derive(Debug, Default)]
pub(super) struct Shards {
    /// When the index was too slow for a lobby, or a burst showed that it will be.
    slow_index_at: Option<Timestamp>,
    /// Shards whose sign this instance wrote, and when.
    signed: Option<(u8, Timestamp)>,
    /// Shards whose sign a look saw last, and when.
    seen: Option<(u8, Timestamp)>,
    /// When this instance last checked whether the shards are still needed.
    swept_at: Option<Timestamp>,
}

impl Shards {
    /// How many shards to look into.
    pub(super) fn known(&self, now: Timestamp) -> u8 {
        let known = [self.seen, self.signed].into_iter().flatten();
        let known = known.filter(|(_, at)| now.since(*at) < SEEN_AGE_MAX);
        known.map(|(shards, _)| shards).max().unwrap_or(1)
    }

    pub(super) fn note_seen(&mut self, shards: u8, now: Timestamp) {
        self.seen = Some((shards, now));
    }

    pub(super) fn note_signed(&mut self, shards: u8, now: Timestamp) {
        self.signed = Some((shards, now));
    }

    pub(super) fn note_slow_index(&mut self, now: Timestamp) {
        self.slow_index_at = Some(now);
    }

    pub(super) fn due(&mut self, now: Timestamp) -> Sharding {
        let (shards, signed_at) = self.signed.unwrap_or((1, Timestamp::default()));
        let age = now.since(signed_at);
        let (seen, seen_at) = self.seen.unwrap_or((1, Timestamp::default()));
        let is_slow = self.slow_index_at.take().is_some_and(|at| now.since(at) < LEARNT_AGE_MAX);
        if seen > shards && now.since(seen_at) < LEARNT_AGE_MAX {
            return Sharding::Sign(seen);
        }
        if is_slow && (shards == 1 || age >= GROWTH_PAUSE) {
            return Sharding::Sign(shards.saturating_mul(GROWTH));
        }
        match shards {
            1 => Sharding::Unneeded,
            _ if age < SIGN_KNOWN_FOR => Sharding::Known(shards),
            _ if age < SIGN_KNOWN_FOR * 2 => Sharding::Sign(shards),
            _ => Sharding::Unneeded,
        }
    }

    /// Whether to check if they are still needed: not at first, then at every interval.
    pub(super) fn is_sweep_due(&mut self, now: Timestamp) -> bool {
        // An instance that has just started cannot know how long they have been there.
        let swept_at = *self.swept_at.get_or_insert(now);
        let is_due = now.since(swept_at) >= SWEEP_INTERVAL;
        if is_due {
            self.swept_at = Some(now);
        }
        is_due
    }
}

//! What a partition may still take: a bucket of units that fills at the partition's rate.

use super::limits::{BURST_SECS, PARTITION_READ_UNITS, PARTITION_WRITE_UNITS};

/// A partition's bucket of one kind of unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    spent: f64,
    seen_ms: u64,
}

impl Bucket {
    fn left(&mut self, rate: f64, now_ms: u64) -> f64 {
        self.spent = (self.spent - (now_ms - self.seen_ms) as f64 * rate / 1_000.0).max(0.0);
        self.seen_ms = now_ms;
        rate * BURST_SECS - self.spent
    }
}

/// A partition's buckets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heat {
    writes: Bucket,
    reads: Bucket,
}

impl Heat {
    /// Whether `units` can be written now.
    pub fn can_write(&mut self, units: f64, now_ms: u64) -> bool {
        self.writes.left(PARTITION_WRITE_UNITS, now_ms) >= units
    }

    /// Spends `units` of the writes.
    pub const fn write(&mut self, units: f64) {
        self.writes.spent += units;
    }

    /// Reads `units`, if they can be had.
    pub fn read(&mut self, units: f64, now_ms: u64) -> bool {
        let can = self.reads.left(PARTITION_READ_UNITS, now_ms) >= units;
        if can {
            self.reads.spent += units;
        }
        can
    }
}

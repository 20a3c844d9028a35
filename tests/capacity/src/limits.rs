//! DynamoDB's limits as the simulation holds them, each with where it comes from.
//!
//! "Guide" is the DynamoDB developer guide, "paper" is Idziorek et al., "Distributed Transactions at Scale in
//! Amazon DynamoDB", USENIX ATC 2023. Left out, and therefore better here than there: quotas of the account
//! and the table, an on-demand table's way up to its first peak (the tables are taken as warmed for the
//! load), the movement of hot items to partitions of their own (every item has one from the start), burst
//! credit older than [`BURST_SECS`].

use std::ops::RangeInclusive;

/// Write units a second of one partition. Guide, "Designing partition keys": "3,000 read units per second and
/// 1,000 write units per second". An item is never on more than one partition; neither, here, is a partition
/// key of an index.
pub const PARTITION_WRITE_UNITS: f64 = 1_000.0;
/// Read units a second of one partition; same page.
pub const PARTITION_READ_UNITS: f64 = 3_000.0;
/// Seconds of unused capacity that a partition keeps. The guide promises up to 300 on best effort, so nothing
/// that has to work may need more than a little: a limit that is enforced each second, as the token bucket of
/// a partition is.
pub const BURST_SECS: f64 = 1.0;
/// What a write in a transaction costs of a plain one. Guide, "Transactions": "two underlying reads or writes
/// of every item".
pub const TRANSACTION_FACTOR: f64 = 2.0;
/// Bytes of a write unit and of a read unit. Guide, "Read and write operations".
pub const WRITE_UNIT_BYTES: usize = 1_024;
/// See [`WRITE_UNIT_BYTES`].
pub const READ_UNIT_BYTES: usize = 4_096;
/// Milliseconds from a function to DynamoDB, and back again: the design's 2 to 5. Whole ones, because tokio's
/// timers are.
pub const TRIP_MS: RangeInclusive<u64> = 2..=5;
/// Milliseconds that a transaction holds its items between its two phases: about one more round within
/// DynamoDB (paper, "two-phase protocol").
pub const HOLD_MS: RangeInclusive<u64> = 3..=6;
/// The same for an item that agreed to a transaction to which another did not: until it hears so.
pub const CANCELLED_HOLD_MS: RangeInclusive<u64> = 1..=3;
/// Milliseconds until an index shows a write: "within a fraction of a second, under normal conditions"
/// (guide, "Global secondary indexes", "Data synchronization").
pub const INDEX_LAG_MS: RangeInclusive<u64> = 10..=50;
/// The same for one write in [`INDEX_TAIL_ONE_IN`].
pub const INDEX_TAIL_MS: RangeInclusive<u64> = 50..=1_000;
/// How rare that is.
pub const INDEX_TAIL_ONE_IN: u64 = 100;
/// Milliseconds of a cold start, until the handler runs.
pub const COLD_START_MS: u64 = 150;

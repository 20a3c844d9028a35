//! What one function instance remembers between finds. All of it may be wrong without harm (decision 17).
//!
//! An instance has one find at a time. Several at once are as safe, but not tuned for: they compete like
//! those of different instances.

pub(super) mod bursts;
pub(super) mod pools;
pub(super) mod scans;

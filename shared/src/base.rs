//! What everything else stands on; nothing here knows what a lobby is.

pub mod ambient;
pub mod aws;
pub mod cache;
pub mod json;
pub mod log;
pub mod pauses;
pub mod record;
pub mod usage;

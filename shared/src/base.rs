//! Basics without game concepts, for all other floors.

pub mod ambient;
pub mod aws;
pub mod cache;
pub mod fields;
pub mod json;
pub mod log;
pub mod pauses;
pub mod record;
pub mod usage;

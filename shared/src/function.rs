//! A function of Lambda: its configuration, the parts of its operation, and the loop that runs it.

pub mod cloud_parts;
pub mod config;
pub mod instance;
pub mod lobby_operation;
pub mod metrics;
pub mod operation;
pub mod seat_parts;
pub mod triggered;

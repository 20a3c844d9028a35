//! Everything that Muster keeps in DynamoDB: one function per intention, its condition beside the item's shape.
//!
//! The tables and why they are shaped so: ARCHITECTURE.md, "Access paths". Functions that can lose a race return the
//! loss as a value; only a fault of the database is an error, [`Error::Unavailable`], or a defect, [`Error::Bug`].

pub mod allotment;
mod batches;
pub mod captcha;
pub mod catalog;
pub mod cdn;
pub mod client;
pub(crate) mod conflicts;
pub mod creation;
pub mod deployments;
pub mod ending;
pub(crate) mod expressions;
pub(crate) mod failures;
pub mod holds;
pub(crate) mod items;
pub(crate) mod keys;
pub mod listing;
pub mod lobbies;
pub mod lobby_data;
pub mod meter;
mod records;
pub mod replays;
mod retirement;
mod secrets;
pub mod servers;
pub mod shards;
pub mod statistics;
pub mod tokens;
pub(crate) mod transactions;
pub mod transitions;
pub mod vain_searches;

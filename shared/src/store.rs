//! Everything that Muster stores in DynamoDB: one function for each intention, its condition beside the
//! item's shape.
//!
//! A function that can lose a race returns the loss as a value. Only a fault of the database is an error,
//! [`Error::Unavailable`](crate::models::errors::Error::Unavailable), or a defect,
//! [`Error::Bug`](crate::models::errors::Error::Bug). Doc comments say which units a function consumes, for
//! items of up to 1 KB written and 4 KB read; `tests/bench/cost.md` counts whole operations. No operation
//! reads a whole table; only the operator's list of games, restores and moves do.
//!
//! | table | key | indexes |
//! |---|---|---|
//! | Catalog | `pk`, `sk`, see [`catalog`] | |
//! | Tokens | `digest`: SHA-256 of a cloud token | |
//! | Secrets | `version_id`, for versions that have secrets | |
//! | Lobbies | `lobby_id` | `candidates`: `pool`, `joinable_from`, with digests of tags |
//! | | | `tagged`: `tag_set`, `joinable_from`, lobbies with tags alone |
//! | | | `by_server`: `server`, `created_at`, keys only |
//! | LobbyData | `lobby_id`, `part`: `tags`, `state`, `config` | |
//! | Servers | `server`: namespace and identifier | `placements`: `placement_pool`, `free_from`, keys only |
//! | Clients | `pk`: `holds/…`, `replay/…`, `captcha/…` | all of them expire |
//! | Ledger | `pk`: `allotted/…`, `head/…`, `room/…`, `statistics/…` | |

pub mod actions;
pub mod allotment;
mod batches;
pub mod captcha;
pub mod catalog;
pub mod cdn;
pub mod client;
mod conflicts;
pub mod creation;
pub mod deployments;
pub mod ending;
mod expressions;
pub mod failed_searches;
pub mod failures;
pub mod holds;
mod items;
mod keys;
pub mod launching;
pub mod listing;
pub mod lobbies;
pub mod lobby_data;
pub mod meter;
pub mod moving;
pub mod nursery;
mod queries;
mod records;
pub mod replays;
pub mod restoring;
mod retirement;
pub mod seats;
mod secrets;
pub mod servers;
pub mod starters;
pub mod statistics;
pub mod tokens;
pub mod transitions;
mod writes;

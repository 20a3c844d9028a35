//! Matching, a file for each step.
//!
//! - [`matchmaker`] runs the rounds of a find, and [`join`] the other ways to a seat.
//! - `look` compares candidates and puts the fullest first; `busy` reads ahead in a pool with many finds.
//! - `take` takes a seat in one lobby, and `waiting` waits until the lobby is ready.
//! - `burst` shares new lobbies between the finds that want the same; `create` creates one lobby; `capacity`
//!   frees capacity for it.
//! - `sharding` spreads the lobbies of a busy pool over keys of the index.
//! - `memory` is what an instance knows from its earlier finds, and `contention` how many others it competes
//!   with.

mod burst;
mod busy;
mod capacity;
mod contention;
mod create;
pub mod join;
mod limits;
mod look;
pub mod matchmaker;
mod memory;
mod outcomes;
pub mod search;
mod sharding;
mod take;
mod waiting;

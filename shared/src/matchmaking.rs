//! Matching, a file for each step.
//!
//! - [`matchmaker`] holds what one instance works with. `find` runs the rounds of a find, and [`join`] the
//!   other ways to a seat.
//! - `compare` looks for candidates and tries the fullest first; `ahead` reads them ahead in a pool with many
//!   finds.
//! - `take` takes a seat in one lobby, `hints` corrects what the index shows of those without one, and
//!   `waiting` waits until the lobby is ready.
//! - `burst` shares new lobbies between finds with the same criteria, by their `position`. `create` creates
//!   one lobby, on one of the `servers`, and `capacity` frees capacity for it. `shortage` refuses again what
//!   it refused a moment ago, which `searches` keeps.
//! - `nearest` creates a lobby in the nearest region that has a place for it.
//! - `memory` keeps what an instance learnt from earlier finds, and `contention` measures how many finds
//!   compete.

mod ahead;
mod burst;
mod capacity;
mod compare;
mod contention;
mod create;
mod find;
mod hints;
pub mod join;
mod limits;
pub mod matchmaker;
mod memory;
mod nearest;
mod nursery;
mod outcomes;
mod position;
mod round;
pub mod search;
mod searches;
mod servers;
mod shortage;
mod take;
mod waiting;

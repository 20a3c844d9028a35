//! Simulated runs of the shipped operations over a database that a seed owns: its network, its clock, its
//! crashes.
//!
//! One run is one thread with tokio's paused clock. Requests go through the functions' own handlers and the
//! SDK as it is, over a link of the run's own; `network` is what lies between them and the emulator, `model`
//! a reference that shares no code with the product and checks every step. The same seed gives the same run:
//! the SDK's jitter is `fastrand`'s, seeded with the rest, its retry quota is the run's own, and maps without
//! order are compared in an order.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "this is test code: what cannot go on panics"
)]

mod chance;
mod faults;
mod history;
mod model;
pub mod mutations;
mod network;
mod on_demand;
mod requests;
mod run;
mod settling;
mod trace;
mod wire;
mod workload;
mod world;

pub use model::Failure;
pub use run::{Options, Outcome, replay, report, run};

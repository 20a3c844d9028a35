//! The repository judged by its text alone: what imports and calls what, how large it is, what its pages say.
//!
//! Nothing of Muster is built for it, so that `cargo test -p tidy` answers within seconds.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

mod budgets;
mod calls;
mod defaults;
mod example;
mod figures;
mod floors;
mod limits;
mod methods;
mod packages;
mod pages;
mod pins;
mod repository;
mod sources;

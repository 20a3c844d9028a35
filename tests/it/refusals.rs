//! What is refused, tried on every operation of the document.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

mod bodies;
mod development;
mod errors;
mod fields;
mod mistakes;
pub mod operation;
mod origins;
mod paths;
mod place;
mod precedence;
pub mod revocations;
pub mod scene;
mod tokens;
mod warnings;

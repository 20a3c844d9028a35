//! Matching: find a seat in a lobby that exists, else create one, else say why not.
//!
//! A quiet find is one query of the index (a hint) and one conditional write on the lobby (the truth). What an instance
//! learnt is kept in `recall` and used from five finds in a second on. Creation is elected, see [`crate::store::creation`]. Every loop
//! is bounded: a find that loses every race ends in [`Error::Contention`] (I3).

mod busy;
mod comparing;
mod create;
pub mod join;
pub(crate) mod limits;
pub mod matchmaker;
pub(crate) mod outcomes;
pub(crate) mod recall;
mod room;
pub mod search;
mod sharding;
mod starting;

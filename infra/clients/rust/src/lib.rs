//! Muster for players and game servers.
//!
//! [`Muster`] finds, joins and creates lobbies for players; [`GameServer`] registers a game server, learns of
//! its lobbies and admits their players. Both repeat what a bad network loses, and never take a seat twice:
//! each intent has an `Idempotency-Key`. Everything runs on Tokio.
//!
//! A future that is dropped gives up: a seat that its request may have taken is left in the background, see
//! [`Muster::settled`].

pub use error::{Error, Refusal};
pub use muster::{Muster, http_client};
pub use seat::Seat;
pub use server::{Event, GameServer, Lobby, Player, ServerOptions};

pub mod api;
mod error;
mod http;
mod intent;
mod muster;
mod seat;
mod server;

#[cfg(test)]
mod rules;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

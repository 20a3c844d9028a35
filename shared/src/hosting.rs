//! The operations of game servers and lobby servers: registration, heartbeats, and the state of lobbies.

pub mod freed_seats;
pub mod game_server;
pub mod launching;
pub mod lobby_server;
pub mod returning;
pub mod revoked;

//! What game servers and lobby servers do: registering and staying alive, and keeping the state of their
//! lobbies.

pub mod game_server;
pub mod lobby_server;

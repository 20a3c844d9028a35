//! What game servers and lobby servers do: registering and staying alive, and keeping the state of their lobbies.

pub mod game_server;
pub mod lobby_server;

use crate::{
    ambient::Ambient,
    lobby::{EndCause, Lobby},
    store::Store,
};

/// Ends a lobby that was met in a state in which it may end, after the work that met it was done: whatever fails here is
/// put right by the next heartbeat, or by the next find that needs the room.
pub(crate) async fn end_in_passing(store: &Store, lobby: &Lobby, cause: EndCause, ambient: &Ambient) {
    match store.end_lobby(lobby, cause, ambient).await {
        Ok(outcome) => {
            tracing::info!(lobby.id = %lobby.lobby_id, ?cause, ?outcome, "a lobby that nobody needs was met");
        }
        Err(error) => {
            let cause = error.cause().unwrap_or("others changed it at the same time").to_owned();
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a lobby could not be ended in passing");
        }
    }
}

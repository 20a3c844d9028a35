//! One instance of the functions that lobby servers call, for every lobby of a game.

use std::sync::Arc;

use shared::{
    auth::{
        keys::TokenKeys,
        matchmaker::{Caller, LobbyRight, MatchmakerAuth},
        settings::{SETTINGS_AGE_MAX, SettingsCache},
    },
    base::ambient::Ambient,
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, ids::GameId, token::PlayerSeat},
    store::client::Store,
};

use crate::stack::lobby_claims;

/// An instance that remembers nothing yet.
#[derive(Debug)]
pub struct LobbyHost {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
    game_id: GameId,
    ambient: Ambient,
}

impl LobbyHost {
    /// The host of the lobbies of `game_id` in `store`.
    #[must_use]
    pub fn new(store: Store, keys: &Arc<TokenKeys>, ambient: &Ambient, game_id: GameId) -> Self {
        let settings = SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX);
        Self {
            auth: MatchmakerAuth::new(Arc::new(settings), Arc::clone(keys), ambient.clone()),
            lobbies: LobbyServer::new(store, ambient.clone()),
            game_id,
            ambient: ambient.clone(),
        }
    }

    /// Connects the player of `seat`, to whom `token` was given.
    ///
    /// # Errors
    /// As the operation.
    pub async fn connect(&self, seat: &PlayerSeat, token: &str) -> Result<(), Error> {
        self.lobbies.connect(&self.right(seat).await?, &self.auth.seat(token)?).await.map(|_replaced| ())
    }

    /// Disconnects the player of `seat`, who has `token`.
    ///
    /// # Errors
    /// As the operation.
    pub async fn disconnect(&self, seat: &PlayerSeat, token: &str) -> Result<(), Error> {
        self.lobbies.disconnect(&self.right(seat).await?, &self.auth.seat(token)?, None).await
    }

    async fn right(&self, seat: &PlayerSeat) -> Result<LobbyRight, Error> {
        let (namespace_id, lobby_id) = (&seat.namespace_id, seat.lobby_id.clone());
        let claims = lobby_claims(&self.game_id, namespace_id, lobby_id, self.ambient.now());
        self.auth.lobby(Caller::Lobby(claims)).await
    }
}

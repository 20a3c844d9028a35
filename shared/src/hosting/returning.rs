//! Players who come back to their seat, after a reload or a lost connection.
//!
//! Each gets a token of the next generation, of which the newest alone connects (I7). While that has not
//! connected, the same token is the answer again, so a player who asks twice has one token more, not two.

use std::time::Duration;

use crate::{
    auth::matchmaker::{MatchmakerAuth, SeatRight},
    base::{
        ambient::{Ambient, Timestamp},
        cache::TimedMap,
    },
    models::{
        errors::Error,
        ids::{GameId, NamespaceId},
        lifecycle::Transition,
        lobby::Lobby,
        token::PlayerSeat,
    },
    store::client::Store,
    wire::{self, FindLobbyResponse},
};

/// Namespaces whose games are remembered.
const GAMES_MAX: usize = 1_024;

/// Gives players who come back their token.
#[derive(Debug)]
pub struct Returning {
    store: Store,
    auth: MatchmakerAuth,
    ambient: Ambient,
    /// The games of namespaces, which a player token does not name.
    games: TimedMap<NamespaceId, GameId>,
}

impl Returning {
    /// To seats of lobbies in `store`.
    #[must_use]
    pub fn new(store: Store, auth: MatchmakerAuth, ambient: Ambient) -> Self {
        Self { store, auth, ambient, games: TimedMap::new(GAMES_MAX) }
    }

    /// The response of the player's find again, with a token that has not connected: a fresh one if the
    /// newest has. Neither the reservation nor the time of a connected seat grows.
    ///
    /// One read unit for a lobby up to 4 KB, and a write unit for a fresh token; a read unit more where the
    /// namespace is new to the instance.
    ///
    /// # Errors
    /// [`Error::PlayerRegistrationExpired`], [`Error::PlayerRemoved`]; [`Error::LobbyNotFound`],
    /// [`Error::LobbyStopped`]; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn rejoin(&self, right: &SeatRight) -> Result<FindLobbyResponse, Error> {
        if right.is_expired() {
            return Err(Error::PlayerRegistrationExpired);
        }
        let (seat, now) = (right.seat(), self.ambient.now());
        let rejoin = Transition::Rejoin(seat.shown());
        let lobby = self.store.make_transition(&seat.lobby_id, &rejoin, now).await?.accepted()?;
        let region = self.region(&lobby, now).await?;
        let generation = lobby.generations_of(&seat.seat_id).map_or(0, |tokens| tokens.newest);
        let seat = PlayerSeat { generation, ..seat.clone() };
        let token = self.auth.keys().issue_player(&seat, right.issued_at());
        tracing::info!(lobby.id = %lobby.lobby_id, generation, "a player came back");
        Ok(FindLobbyResponse::new(seat.lobby_id, None, region, wire::ports(&lobby.ports), vec![token]))
    }

    /// The lobby's region, with its name if the game is known.
    async fn region(&self, lobby: &Lobby, now: Timestamp) -> Result<wire::Region, Error> {
        let (namespace_id, region_id) = (&lobby.pool.namespace_id, lobby.pool.region_id.clone());
        let settings = match self.game_of(lobby, now).await? {
            Some(game_id) => self.auth.settings().settings(&game_id, namespace_id).await?,
            None => None,
        };
        let region = settings.as_ref().and_then(|settings| settings.game.regions.get(&region_id));
        let display_name = region.map_or_else(|| region_id.to_string(), |region| region.display_name.clone());
        Ok(wire::Region { region_id, display_name })
    }

    /// The game of a lobby's namespace, as its game server registered.
    async fn game_of(&self, lobby: &Lobby, now: Timestamp) -> Result<Option<GameId>, Error> {
        let namespace_id = &lobby.pool.namespace_id;
        if let Some(game_id) = self.games.get(namespace_id, Duration::MAX, now) {
            return Ok(Some(game_id));
        }
        let Some(key) = &lobby.server else { return Ok(None) };
        let game_id = self.store.server(key).await?.and_then(|server| server.game_id);
        if let Some(game_id) = &game_id {
            self.games.put(namespace_id.clone(), game_id.clone(), now);
        }
        Ok(game_id)
    }
}

//! A player's place in a lobby.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    api::{FindLobbyResponse, Port, Region},
    error::Error,
    http::send,
    intent::seat_call,
    muster::Service,
};

/// A player's place in a lobby. Connect at once: the seat is held only for the game mode's
/// `reservation_seconds`.
#[derive(Clone)]
pub struct Seat {
    /// The lobby.
    pub lobby_id: String,
    /// Where it runs.
    pub region: Region,
    /// What friends type in place of `lobby_id`, in a lobby that this player created.
    pub code: Option<String>,
    /// By label, what the game server registered.
    pub ports: BTreeMap<String, Port>,
    /// What the player shows the game server: the seat's newest player token, which alone is the right to it.
    pub token: String,
    /// The seats of the other players of a party, in the order of `players_data`.
    pub others: Vec<Self>,
    service: Arc<Service>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("lobby_id", &self.lobby_id).finish_non_exhaustive()
    }
}

impl Seat {
    pub(crate) fn new(service: &Arc<Service>, answer: FindLobbyResponse) -> Self {
        let tokens = answer.tokens();
        let FindLobbyResponse { lobby, ports, player, .. } = answer;
        let seat = |token| Self {
            lobby_id: lobby.lobby_id.clone(),
            region: lobby.region.clone(),
            code: lobby.code.clone(),
            ports: ports.clone(),
            token,
            others: Vec::new(),
            service: Arc::clone(service),
        };
        let others = tokens.into_iter().skip(1).map(seat).collect();
        Self { others, ..seat(player.token) }
    }

    /// The host and port of a single port, by its label.
    #[must_use]
    pub fn address(&self, label: &str) -> Option<(&str, u16)> {
        let port = self.ports.get(label)?;
        Some((port.hostname.trim_matches(['[', ']']), port.port?))
    }

    /// Gives the seat up. Once the player is connected, it is the game server that frees it when the
    /// connection ends, and keeps it for nobody.
    ///
    /// # Errors
    /// [`Error`], where Muster refuses or does not respond within a minute.
    pub async fn leave(&self) -> Result<(), Error> {
        let _left: Value = self.call("leave").await?;
        Ok(())
    }

    /// Comes back to the seat: gets its newest token, a fresh one where that has connected.
    ///
    /// # Errors
    /// [`Error`], where the seat is gone, or Muster does not respond within a minute.
    pub async fn rejoin(&mut self) -> Result<(), Error> {
        let FindLobbyResponse { player, ports, .. } = self.call("rejoin").await?;
        (self.token, self.ports) = (player.token, ports);
        Ok(())
    }

    async fn call<T: serde::de::DeserializeOwned>(&self, operation: &str) -> Result<T, Error> {
        let Service { world, url, deadline, .. } = &*self.service;
        send(world, &seat_call(url, operation, &self.token)?, *deadline).await
    }
}

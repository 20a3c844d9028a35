//! `POST /matchmaker/servers/end-lobby`: ends a lobby with its seats, and frees its place.

use shared::{
    auth::matchmaker::{Caller, MatchmakerAuth},
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{
        errors::Error,
        ids::{LobbyId, ServerKey},
        lobby::{EndCause, Lobby},
        token::TokenKind,
    },
    request::Request,
    store::{client::Store, ending::EndOutcome},
    wire::{EndLobbyRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct EndLobby {
    auth: MatchmakerAuth,
    store: Store,
    ambient: Ambient,
}

impl Operation for EndLobby {
    type Output = Empty;

    const NAME: &'static str = "end-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.matchmaker_auth()?, store: instance.store()?, ambient: instance.ambient() })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Server)?;
        if self.auth.developer(&caller).await?.is_some() {
            request.json()?;
            return Ok(Empty {});
        }
        // Who: any server of the namespace, or the lobby's own server.
        let (namespace_id, only, only_on) = if let Caller::Lobby(_) = &caller {
            let right = self.auth.lobby(caller).await?;
            (right.namespace_id().clone(), Some(right.lobby_id().clone()), None)
        } else {
            let (right, _settings) = self.auth.game_server(caller).await?;
            (right.namespace_id().clone(), None, right.only())
        };

        // What.
        let body: EndLobbyRequest = request.body()?;
        if only.is_some_and(|only| only.as_str() != body.lobby_id) {
            return Err(Error::Forbidden);
        }
        let lobby_id: LobbyId = body.lobby_id.parse().map_err(|_| Error::LobbyNotFound)?;

        // Store.
        let lobby = self.store.lobby(&lobby_id).await?;
        let is_allowed = |lobby: &Lobby| {
            let is_elsewhere = |on: &ServerKey| only_on.as_ref().is_some_and(|only| on.server_id != *only);
            lobby.pool.namespace_id == namespace_id && !lobby.server.as_ref().is_some_and(is_elsewhere)
        };
        let lobby = lobby.filter(is_allowed).ok_or(Error::LobbyNotFound)?;
        match self.store.end_lobby(&lobby, EndCause::Requested, &self.ambient).await? {
            EndOutcome::Ended => tracing::info!(lobby.id = %lobby_id, "a lobby was ended"),
            EndOutcome::AlreadyEnded | EndOutcome::Outdated => {}
        }
        Ok(Empty {})
    }
}

//! `GET /matchmaker/lobbies/{lobby_id}/state`: the state that the lobby server last set.

use serde_json::value::RawValue;
use shared::{
    auth::matchmaker::{Caller, MatchmakerAuth},
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{errors::Error, ids::LobbyId, token::TokenKind},
    request::Request,
    store::client::Store,
};

/// The operation.
#[derive(Debug)]
pub struct GetLobbyState {
    auth: MatchmakerAuth,
    store: Store,
    ambient: Ambient,
}

impl Operation for GetLobbyState {
    type Output = Box<RawValue>;

    const NAME: &'static str = "get-lobby-state";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.matchmaker_auth()?, store: instance.store()?, ambient: instance.ambient() })
    }

    async fn call(&self, request: &Request) -> Result<Box<RawValue>, Error> {
        let lobby_id: LobbyId = request.path("lobby_id")?;
        let caller = self.auth.caller(request, TokenKind::Public)?;
        if self.auth.developer(&caller).await?.is_some() {
            return RawValue::from_string("{}".to_owned()).map_err(|error| Error::Bug(error.to_string()));
        }
        let namespace_id = if let Caller::Lobby(_) = &caller {
            let right = self.auth.lobby(caller).await?;
            if *right.lobby_id() != lobby_id {
                return Err(Error::Forbidden);
            }
            right.namespace_id().clone()
        } else {
            self.auth.player(caller, request).await?.0.namespace_id().clone()
        };
        let lobby = self.store.lobby(&lobby_id).await?;
        let lobby =
            lobby.filter(|lobby| lobby.pool.namespace_id == namespace_id).ok_or(Error::LobbyNotFound)?;
        if lobby.is_over(self.ambient.now()) {
            return Err(Error::LobbyStopped);
        }
        let state = if lobby.has_state { self.store.lobby_state(&lobby_id).await? } else { None };
        Ok(state.unwrap_or_else(|| RawValue::NULL.to_owned()))
    }
}

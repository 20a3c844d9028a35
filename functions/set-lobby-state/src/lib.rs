//! `PUT /matchmaker/lobbies/state`: sets a lobby's state, any JSON.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{
        errors::Error,
        handed_on::{HandedOn, STATE_DEPTH_MAX},
        token::TokenKind,
    },
    request::Request,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyState {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl Operation for SetLobbyState {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-state";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            lobbies: LobbyServer::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Lobby)?;
        let is_mock = self.auth.developer(&caller).await?.is_some();
        if is_mock {
            request.raw_json()?;
            return Ok(Empty {});
        }
        let right = self.auth.lobby(caller).await?;
        let state = HandedOn::new(&request.raw_json()?, ".", STATE_DEPTH_MAX)?;
        self.lobbies.set_state(&right, &state).await?;
        Ok(Empty {})
    }
}

//! `PUT /matchmaker/lobbies/closed`: closes a lobby to finds, or reopens it.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::{SetLobbyClosedRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyClosed {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl Operation for SetLobbyClosed {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-closed";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            lobbies: LobbyServer::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Lobby)?;
        if self.auth.developer(&caller).await?.is_some() {
            request.json()?;
            return Ok(Empty {});
        }
        let right = self.auth.lobby(caller).await?;
        let body: SetLobbyClosedRequest = request.body()?;
        self.lobbies.set_closed(&right, body.is_closed).await?;
        Ok(Empty {})
    }
}

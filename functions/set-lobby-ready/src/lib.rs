//! `POST /matchmaker/lobbies/ready`: makes a lobby ready for players to connect.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyReady {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl Operation for SetLobbyReady {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-ready";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            lobbies: LobbyServer::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Lobby)?;
        if self.auth.developer(&caller).await?.is_none() {
            self.lobbies.ready(&self.auth.lobby(caller).await?).await?;
        }
        Ok(Empty {})
    }
}

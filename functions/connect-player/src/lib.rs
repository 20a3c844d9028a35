//! `POST /matchmaker/players/connected`: connects the player whose token the lobby server sends.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::{PlayerRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct ConnectPlayer {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl Operation for ConnectPlayer {
    type Output = Empty;

    const NAME: &'static str = "connect-player";

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
            let body: PlayerRequest = request.body()?;
            self.auth.check_mock_player(&body.player_token)?;
            return Ok(Empty {});
        }
        let right = self.auth.lobby(caller).await?;
        let body: PlayerRequest = request.body()?;
        self.lobbies.connect(&right, &body.player_token, self.auth.keys()).await?;
        Ok(Empty {})
    }
}

//! `POST /matchmaker/players/connected`: connects the player whose token the lobby server sends.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::{ConnectPlayerRequest, ConnectPlayerResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ConnectPlayer {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl Operation for ConnectPlayer {
    type Output = ConnectPlayerResponse;

    const NAME: &'static str = "connect-player";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            lobbies: LobbyServer::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<ConnectPlayerResponse, Error> {
        let caller = self.auth.caller(request, TokenKind::Lobby)?;
        if self.auth.developer(&caller).await?.is_some() {
            let body: ConnectPlayerRequest = request.body()?;
            let player = self.auth.mock_player(&body.player_token)?;
            return Ok(ConnectPlayerResponse { player: body.details.then_some(player) });
        }
        let right = self.auth.lobby(caller).await?;
        let body: ConnectPlayerRequest = request.body()?;
        let seat = self.auth.seat(&body.player_token)?;
        let player = |replaced| body.details.then(|| seat.seat().details(replaced));
        match self.lobbies.connect(&right, &seat).await {
            Ok(replaced) => Ok(ConnectPlayerResponse { player: player(replaced) }),
            // The response that is lost may have said so.
            Err(Error::PlayerAlreadyConnected(_)) => {
                let replaced = seat.seat().generation > 0;
                Err(Error::PlayerAlreadyConnected(player(replaced).map(Box::new)))
            }
            Err(error) => Err(error),
        }
    }
}

//! `POST /matchmaker/players/connected`: a player showed its token to the lobby server.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    hosting::lobby_server::LobbyServer,
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{PlayerRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct ConnectPlayer {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl ConnectPlayer {
    /// The operation on lobbies in `store`, for whom `auth` lets in.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient) -> Self {
        Self { auth, lobbies: LobbyServer::new(store, ambient) }
    }
}

impl Operation for ConnectPlayer {
    type Output = Empty;

    const NAME: &'static str = "connect-player";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request)?;
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

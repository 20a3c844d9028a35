//! `PUT /matchmaker/lobbies/closed`: whether finds may enter a lobby.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    hosting::lobby_server::LobbyServer,
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{SetLobbyClosedRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyClosed {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl SetLobbyClosed {
    /// The operation on lobbies in `store`, for whom `auth` lets in.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient) -> Self {
        Self { auth, lobbies: LobbyServer::new(store, ambient) }
    }
}

impl Operation for SetLobbyClosed {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-closed";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request)?;
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

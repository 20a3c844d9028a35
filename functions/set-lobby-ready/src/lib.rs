//! `POST /matchmaker/lobbies/ready`: players may connect from now on.

use shared::{
    auth::matchmaker::MatchmakerAuth, base::ambient::Ambient, function::operation::Operation,
    hosting::lobby_server::LobbyServer, models::errors::Error, request::Request, store::client::Store,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyReady {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl SetLobbyReady {
    /// The operation on lobbies in `store`, for whom `auth` lets in.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient) -> Self {
        Self { auth, lobbies: LobbyServer::new(store, ambient) }
    }
}

impl Operation for SetLobbyReady {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-ready";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request)?;
        if self.auth.developer(&caller).await?.is_none() {
            self.lobbies.ready(&self.auth.lobby(caller).await?).await?;
        }
        Ok(Empty {})
    }
}

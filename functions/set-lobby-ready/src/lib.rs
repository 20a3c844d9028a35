//! `POST /matchmaker/lobbies/ready`: players may connect from now on.

use shared::{
    ambient::Ambient,
    auth::MatchmakerAuth,
    errors::Error,
    hosting::lobby_server::LobbyServer,
    http::{Empty, Operation, Request},
    store::Store,
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

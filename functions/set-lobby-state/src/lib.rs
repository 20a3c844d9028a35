//! `PUT /matchmaker/lobbies/state`: what a lobby server says of its lobby, any JSON.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    hosting::lobby_server::LobbyServer,
    models::{
        errors::Error,
        handed_on::{HandedOn, STATE_DEPTH_MAX},
    },
    request::Request,
    store::client::Store,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct SetLobbyState {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
}

impl SetLobbyState {
    /// The operation on lobbies in `store`, for whom `auth` lets in.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient) -> Self {
        Self { auth, lobbies: LobbyServer::new(store, ambient) }
    }
}

impl Operation for SetLobbyState {
    type Output = Empty;

    const NAME: &'static str = "set-lobby-state";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request)?;
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

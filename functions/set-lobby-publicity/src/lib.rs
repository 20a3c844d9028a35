//! `PUT /matchmaker/lobbies/publicity`: makes a lobby public or private.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
    wire::SetLobbyPublicityRequest,
};

/// The operation.
pub type SetLobbyPublicity = OnLobby<SetPublicity>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum SetPublicity {}

impl LobbyOperation for SetPublicity {
    const NAME: &'static str = "set-lobby-publicity";

    fn check_mock(request: &Request, _auth: &MatchmakerAuth) -> Result<(), Error> {
        request.json().map(|_| ())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let body: SetLobbyPublicityRequest = call.request.body()?;
        call.lobbies.set_publicity(call.right, body.publicity).await
    }
}

//! `PUT /matchmaker/lobbies/closed`: closes a lobby to finds, or reopens it.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
    wire::SetLobbyClosedRequest,
};

/// The operation.
pub type SetLobbyClosed = OnLobby<SetClosed>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum SetClosed {}

impl LobbyOperation for SetClosed {
    const NAME: &'static str = "set-lobby-closed";

    fn check_mock(request: &Request, _auth: &MatchmakerAuth) -> Result<(), Error> {
        request.json().map(|_| ())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let body: SetLobbyClosedRequest = call.request.body()?;
        call.lobbies.set_closed(call.right, body.is_closed).await
    }
}

//! `PUT /matchmaker/lobbies/state`: sets a lobby's state, any JSON.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::{
        errors::Error,
        handed_on::{HandedOn, STATE_DEPTH_MAX},
    },
    request::Request,
};

/// The operation.
pub type SetLobbyState = OnLobby<SetState>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum SetState {}

impl LobbyOperation for SetState {
    const NAME: &'static str = "set-lobby-state";

    fn check_mock(request: &Request, _auth: &MatchmakerAuth) -> Result<(), Error> {
        request.raw_json().map(|_| ())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let state = HandedOn::new(&call.request.raw_json()?, ".", STATE_DEPTH_MAX)?;
        call.lobbies.set_state(call.right, &state).await
    }
}

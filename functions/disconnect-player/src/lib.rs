//! `POST /matchmaker/players/disconnected`: frees the seat of a player who left, or keeps it for a while.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
    wire::{DisconnectPlayerRequest, Disconnected},
};

/// The operation.
pub type DisconnectPlayer = OnLobby<Disconnect>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum Disconnect {}

impl LobbyOperation for Disconnect {
    const NAME: &'static str = "disconnect-player";

    fn check_mock(request: &Request, auth: &MatchmakerAuth) -> Result<(), Error> {
        match request.body::<DisconnectPlayerRequest>()?.read()?.0 {
            Disconnected::Player(token) => auth.mock_player(&token).map(|_| ()),
            Disconnected::Everyone => Ok(()),
        }
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        match call.request.body::<DisconnectPlayerRequest>()?.read()? {
            (Disconnected::Player(token), keep) => {
                call.lobbies.disconnect(call.right, &call.auth.seat(&token)?, keep).await
            }
            (Disconnected::Everyone, keep) => call.lobbies.disconnect_everyone(call.right, keep).await,
        }
    }
}

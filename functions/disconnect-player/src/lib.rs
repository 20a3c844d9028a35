//! `POST /matchmaker/players/disconnected`: frees the seat of a player who left.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
    wire::PlayerRequest,
};

/// The operation.
pub type DisconnectPlayer = OnLobby<Disconnect>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum Disconnect {}

impl LobbyOperation for Disconnect {
    const NAME: &'static str = "disconnect-player";

    fn check_mock(request: &Request, auth: &MatchmakerAuth) -> Result<(), Error> {
        auth.mock_player(&request.body::<PlayerRequest>()?.player_token).map(|_| ())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let body: PlayerRequest = call.request.body()?;
        call.lobbies.disconnect(call.right, &call.auth.seat(&body.player_token)?).await
    }
}

//! `POST /matchmaker/players/connected`: connects the player whose token the lobby server sends.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
    wire::PlayerRequest,
};

/// The operation.
pub type ConnectPlayer = OnLobby<Connect>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum Connect {}

impl LobbyOperation for Connect {
    const NAME: &'static str = "connect-player";

    fn check_mock(request: &Request, auth: &MatchmakerAuth) -> Result<(), Error> {
        auth.check_mock_player(&request.body::<PlayerRequest>()?.player_token)
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let body: PlayerRequest = call.request.body()?;
        call.lobbies.connect(call.right, &call.auth.seat(&body.player_token)?).await
    }
}

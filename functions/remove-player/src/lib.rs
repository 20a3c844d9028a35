//! `POST /matchmaker/players/remove`: frees the seat of a player whom the lobby server does not want, and
//! keeps them out of the lobby for a while.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::{errors::Error, warnings::Warning},
    request::Request,
    wire::RemovePlayerRequest,
};

/// The operation.
pub type RemovePlayer = OnLobby<Remove>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum Remove {}

impl LobbyOperation for Remove {
    const NAME: &'static str = "remove-player";

    fn check_mock(request: &Request, auth: &MatchmakerAuth) -> Result<(), Error> {
        let body: RemovePlayerRequest = request.body()?;
        body.excluded_for()?;
        auth.mock_player(&body.player_token).map(|_| ())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        let body: RemovePlayerRequest = call.request.body()?;
        let (seat, excluded_for) = (call.auth.seat(&body.player_token)?, body.excluded_for()?);
        if !call.lobbies.remove(call.right, &seat, excluded_for).await? {
            call.request.warn(Warning::NotKeptOut);
        }
        Ok(())
    }
}

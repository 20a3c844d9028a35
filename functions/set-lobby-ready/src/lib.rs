//! `POST /matchmaker/lobbies/ready`: makes a lobby ready for players to connect.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::lobby_operation::{LobbyCall, LobbyOperation, OnLobby},
    models::errors::Error,
    request::Request,
};

/// The operation.
pub type SetLobbyReady = OnLobby<SetReady>;

/// What it does on a lobby.
#[derive(Debug)]
pub enum SetReady {}

impl LobbyOperation for SetReady {
    const NAME: &'static str = "set-lobby-ready";

    fn check_mock(_request: &Request, _auth: &MatchmakerAuth) -> Result<(), Error> {
        Ok(())
    }

    async fn call(call: LobbyCall<'_>) -> Result<(), Error> {
        call.lobbies.ready(call.right).await
    }
}

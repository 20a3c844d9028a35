//! `POST /matchmaker/lobbies/join`: a seat for a player in a lobby that it names.

use std::sync::Arc;

use shared::{
    ambient::Ambient,
    auth::MatchmakerAuth,
    errors::Error,
    http::{Operation, Request},
    matchmaking::{Matchmaker, reply::mock_seat},
    screening::{Entry, Screening},
    wire::{FindLobbyResponse, JoinLobbyRequest},
};

/// The operation.
#[derive(Debug)]
pub struct JoinLobby {
    auth: MatchmakerAuth,
    matchmaker: Arc<Matchmaker>,
    screening: Arc<Screening>,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl JoinLobby {
    /// The operation with `matchmaker`, for whom `auth` and `screening` let in; `edge_secret` is what the edge proves itself
    /// with, if there is one.
    #[must_use]
    pub const fn new(
        auth: MatchmakerAuth,
        matchmaker: Arc<Matchmaker>,
        screening: Arc<Screening>,
        ambient: Ambient,
        edge_secret: Option<String>,
    ) -> Self {
        Self { auth, matchmaker, screening, ambient, edge_secret }
    }
}

impl Operation for JoinLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "join-lobby";

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        // What: any JSON will do for a developer; its types count for everybody else.
        let body = request.json()?;
        let caller = self.auth.caller(request);
        if let Ok(caller) = &caller
            && let Some(host) = self.auth.developer(caller).await?
        {
            return mock_seat(host, self.auth.keys(), &self.ambient);
        }
        let body: JoinLobbyRequest = body.parse()?;

        // Who.
        let (_right, settings) = self.auth.player(caller?, request).await?;

        // Rules.
        let lobby_id = body.lobby_id.parse().map_err(|_| Error::LobbyNotFound)?;
        let joinable = self.matchmaker.joinable(&settings, lobby_id).await?;

        // Screening.
        let entry = Entry::join(&body, &joinable.lobby, &joinable.version);
        self.screening.check(&entry, request, self.edge_secret.as_deref()).await?;

        // Store.
        let found = self.matchmaker.join(&joinable).await?;
        found.log();

        // Reply.
        found.into_response(&settings, self.auth.keys())
    }
}

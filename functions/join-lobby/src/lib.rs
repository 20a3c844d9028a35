//! `POST /matchmaker/lobbies/join`: a seat for a player in a lobby that it names.

use std::sync::Arc;

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    matchmaking::matchmaker::Matchmaker,
    models::errors::Error,
    request::Request,
    screening::check::{Entry, Screening},
    seating::{
        entrance::{Entrance, Seating},
        reply::mock_seat,
    },
    wire::{FindLobbyResponse, JoinLobbyRequest},
};

/// The operation.
#[derive(Debug)]
pub struct JoinLobby {
    auth: MatchmakerAuth,
    matchmaker: Arc<Matchmaker>,
    screening: Arc<Screening>,
    seating: Seating,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl JoinLobby {
    /// The operation with `matchmaker`, for whom `auth` and `screening` let in; `edge_secret` is what the
    /// edge proves itself with, if there is one.
    #[must_use]
    pub fn new(
        auth: MatchmakerAuth,
        matchmaker: Arc<Matchmaker>,
        screening: Arc<Screening>,
        ambient: Ambient,
        edge_secret: Option<String>,
    ) -> Self {
        let store = matchmaker.store().clone();
        let seating = Seating::new(store, auth.clone(), ambient.clone(), edge_secret.clone());
        Self { auth, matchmaker, screening, seating, ambient, edge_secret }
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
        let body = JoinLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let seeker = match self.seating.begin(request, &right, &settings, Self::NAME).await? {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let lobby_id = body.lobby_id.parse().map_err(|_| Error::LobbyNotFound)?;
        let joinable = self.matchmaker.joinable(&settings, lobby_id).await?;

        // Screening, then store.
        let found = async {
            let entry = Entry::join(&body, &joinable.lobby, &joinable.version, &joinable.tags);
            self.screening.check(&entry, request, self.edge_secret.as_deref(), &seeker).await?;
            self.matchmaker.join(&joinable, &seeker).await
        };

        // Reply.
        self.seating.finish(&seeker, found.await, &settings).await
    }
}

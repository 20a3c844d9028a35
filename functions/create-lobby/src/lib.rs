//! `POST /matchmaker/lobbies/create`: a lobby of a player's own, with the player's seat in it.

use std::sync::Arc;

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::errors::Error,
    request::Request,
    rules::criteria::Criteria,
    screening::check::{Entry, Screening},
    seating::{
        entrance::{Entrance, Seating},
        reply::mock_seat,
    },
    wire::{CreateLobbyRequest, FindLobbyResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateLobby {
    auth: MatchmakerAuth,
    matchmaker: Arc<Matchmaker>,
    screening: Arc<Screening>,
    seating: Seating,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl CreateLobby {
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

impl Operation for CreateLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "create-lobby";

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        // What: any JSON will do for a developer; its types count for everybody else.
        let body = request.json()?;
        let caller = self.auth.caller(request);
        if let Ok(caller) = &caller
            && let Some(host) = self.auth.developer(caller).await?
        {
            return mock_seat(host, self.auth.keys(), &self.ambient);
        }
        let body = CreateLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let seeker = match self.seating.begin(request, &right, &settings, Self::NAME).await? {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let viewer = request.viewer(self.edge_secret.as_deref());
        let criteria =
            Criteria::of_custom_lobby(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;

        // Screening, then store.
        let found = async {
            let entry = Entry::create(&body, &criteria, &settings.version);
            self.screening.check(&entry, request, self.edge_secret.as_deref(), &seeker).await?;
            let (settings, config) = (Arc::clone(&settings), body.lobby_config);
            let search = Search { criteria, settings, may_create: true, config };
            self.matchmaker.create_custom_lobby(&search, &seeker).await
        };

        // Reply.
        self.seating.finish(&seeker, found.await, &settings).await
    }
}

//! `POST /matchmaker/lobbies/find`: a seat for a player, in a lobby that exists or in a new one.

use std::sync::Arc;

use shared::{
    function::{config::InvalidConfig, instance::Instance, operation::Operation, seat_parts::SeatParts},
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::{errors::Error, token::TokenKind, warnings::Warning},
    request::Request,
    rules::criteria::Criteria,
    screening::admission::Admission,
    seating::{entrance::Entrance, reply::mock_seat},
    store::meter::metered,
    wire::{FindLobbyRequest, FindLobbyResponse},
};

/// The operation.
#[derive(Debug)]
pub struct FindLobby(SeatParts);

impl Operation for FindLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "find-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        SeatParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        if !request.wants_explanation() {
            let answer = self.find(request).await;
            request.trace().log();
            return answer;
        }
        let (answer, usage) = metered(self.find(request)).await;
        request.trace().cost(usage);
        request.trace().log();
        answer.map(|answer| FindLobbyResponse { explain: request.explanation(), ..answer })
    }
}

impl FindLobby {
    /// Its matchmaker, so that a caller can load game servers before the first request.
    #[must_use]
    pub const fn matchmaker(&self) -> &Matchmaker {
        &self.0.matchmaker
    }

    async fn find(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        let SeatParts { auth, matchmaker, screening, seating, ambient, edge_secret } = &self.0;
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = auth.developer(caller).await?
        {
            request.trace().open();
            return mock_seat(host, body, None, auth.keys(), ambient);
        }
        let body = FindLobbyRequest::read(body)?;
        if body.game_modes.is_empty() {
            return Err(Error::NoGameModeProvided);
        }

        // Who.
        let (right, settings) = auth.player(caller?, request).await?;
        let mut seeker = match seating
            .begin(request, &right, &settings, <Self as Operation>::NAME, body.party.clone())
            .await?
        {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let settings = auth.settings().running(body.version_id.as_deref(), settings).await?;
        let viewer = request.viewer(edge_secret.as_deref());
        let criteria =
            Criteria::resolve(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;
        request.trace().resolved(&criteria);
        seeker.exclude(body.excluded());
        for mode in &criteria.left_out {
            request.warn(Warning::GameModeLeftOut(mode.clone()));
        }

        // Screening, then store.
        let found = async {
            let admission = Admission::find(&body, &criteria, &right, &settings.version);
            screening.check(&admission, request, edge_secret.as_deref(), &seeker).await?;
            let may_create = !body.prevent_auto_create_lobby;
            let search = Search { criteria, settings: Arc::clone(&settings), may_create, config: None };
            matchmaker.find(&search, &seeker).await
        };

        // Reply.
        seating.finish(&seeker, found.await, &settings).await
    }
}

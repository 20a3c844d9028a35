//! `POST /matchmaker/lobbies/find`: a seat for a player, in a lobby that exists or in a new one.

use std::sync::Arc;

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::{errors::Error, token::TokenKind, warnings::Warning},
    request::Request,
    rules::criteria::Criteria,
    screening::admission::{Admission, Screening},
    seating::{
        entrance::{Entrance, Seating},
        reply::mock_seat,
    },
    store::meter::metered,
    wire::{FindLobbyRequest, FindLobbyResponse},
};

/// The operation.
#[derive(Debug)]
pub struct FindLobby {
    auth: MatchmakerAuth,
    matchmaker: Matchmaker,
    screening: Screening,
    seating: Seating,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl Operation for FindLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "find-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            matchmaker: instance.matchmaker()?,
            screening: instance.screening()?,
            seating: instance.seating()?,
            ambient: instance.ambient(),
            edge_secret: instance.edge_secret(),
        })
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
        &self.matchmaker
    }

    async fn find(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = self.auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = self.auth.developer(caller).await?
        {
            request.trace().open();
            return mock_seat(host, body, None, self.auth.keys(), &self.ambient);
        }
        let body = FindLobbyRequest::read(body)?;
        if body.game_modes.is_empty() {
            return Err(Error::NoGameModeProvided);
        }

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let mut seeker = match self
            .seating
            .begin(request, &right, &settings, <Self as Operation>::NAME, body.party.clone())
            .await?
        {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let settings = self.auth.settings().running(body.version_id.as_deref(), settings).await?;
        let viewer = request.viewer(self.edge_secret.as_deref());
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
            self.screening.check(&admission, request, self.edge_secret.as_deref(), &seeker).await?;
            let may_create = !body.prevent_auto_create_lobby;
            let search = Search { criteria, settings: Arc::clone(&settings), may_create, config: None };
            self.matchmaker.find(&search, &seeker).await
        };

        // Reply.
        self.seating.finish(&seeker, found.await, &settings).await
    }
}

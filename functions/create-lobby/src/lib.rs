//! `POST /matchmaker/lobbies/create`: creates a lobby for a player, with the player's seat in it.

use std::sync::Arc;

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::{errors::Error, lobby_code::LobbyCode, token::TokenKind},
    request::Request,
    rules::criteria::Criteria,
    screening::admission::{Admission, Screening},
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
    matchmaker: Matchmaker,
    screening: Screening,
    seating: Seating,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl Operation for CreateLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "create-lobby";

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
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = self.auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = self.auth.developer(caller).await?
        {
            return mock_seat(host, body, Some(LobbyCode::mock()), self.auth.keys(), &self.ambient);
        }
        let body = CreateLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let seeker =
            match self.seating.begin(request, &right, &settings, Self::NAME, body.party.clone()).await? {
                Entrance::Replayed(answer) => return Ok(*answer),
                Entrance::Open(seeker) => seeker,
            };

        // Rules.
        let settings = self.auth.settings().running(body.version_id.as_deref(), settings).await?;
        let viewer = request.viewer(self.edge_secret.as_deref());
        let criteria =
            Criteria::of_custom_lobby(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;

        // Screening, then store.
        let found = async {
            let admission = Admission::create(&body, &criteria, &settings.version);
            self.screening.check(&admission, request, self.edge_secret.as_deref(), &seeker).await?;
            let (settings, config) = (Arc::clone(&settings), body.lobby_config);
            let search = Search { criteria, settings, may_create: true, config };
            self.matchmaker.create_custom_lobby(&search, &seeker).await
        };

        // Reply.
        self.seating.finish(&seeker, found.await, &settings).await
    }
}

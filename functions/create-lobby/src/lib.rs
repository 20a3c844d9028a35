//! `POST /matchmaker/lobbies/create`: creates a lobby for a player, with the player's seat in it.

use std::sync::Arc;

use shared::{
    function::{config::InvalidConfig, instance::Instance, operation::Operation, seat_parts::SeatParts},
    matchmaking::search::Search,
    models::{errors::Error, lobby_code::LobbyCode, token::TokenKind},
    request::Request,
    rules::criteria::Criteria,
    screening::admission::Admission,
    seating::{entrance::Entrance, reply::mock_seat},
    wire::{CreateLobbyRequest, FindLobbyResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateLobby(SeatParts);

impl Operation for CreateLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "create-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        SeatParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        let SeatParts { auth, matchmaker, screening, seating, ambient, edge_secret } = &self.0;
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = auth.developer(caller).await?
        {
            return mock_seat(host, body, Some(LobbyCode::mock()), auth.keys(), ambient);
        }
        let body = CreateLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = auth.player(caller?, request).await?;
        let seeker = match seating.begin(request, &right, &settings, Self::NAME, body.party.clone()).await? {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let settings = auth.settings().running(body.version_id.as_deref(), settings).await?;
        let viewer = request.viewer(edge_secret.as_deref());
        let criteria =
            Criteria::of_custom_lobby(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;

        // Screening, then store.
        let found = async {
            let admission = Admission::create(&body, &criteria, &settings.version);
            screening.check(&admission, request, edge_secret.as_deref(), &seeker).await?;
            let (settings, config) = (Arc::clone(&settings), body.lobby_config);
            let search = Search { criteria, settings, may_create: true, config };
            matchmaker.create_custom_lobby(&search, &seeker).await
        };

        // Reply.
        seating.finish(&seeker, found.await, &settings).await
    }
}

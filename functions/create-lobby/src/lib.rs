//! `POST /matchmaker/lobbies/create`: creates a lobby for a player, with the player's seat in it.

use std::sync::Arc;

use shared::{
    function::{
        config::InvalidConfig,
        instance::Instance,
        operation::Operation,
        seat_parts::{Entered, Opened, SeatParts},
    },
    matchmaking::search::Search,
    models::errors::Error,
    request::Request,
    rules::criteria::Criteria,
    screening::admission::Admission,
    wire::FindLobbyResponse,
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
        let parts = &self.0;
        // What, who.
        let Opened { body, settings, seeker } = match parts.enter(request, Self::NAME).await? {
            Entered::Answered(answer) => return Ok(*answer),
            Entered::Open(opened) => opened,
        };

        // Rules.
        let viewer = request.viewer(parts.edge_secret.as_deref());
        let criteria =
            Criteria::of_custom_lobby(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;

        // Screening, then store.
        let found = async {
            let admission = Admission::create(&body, &criteria, &settings.version, &seeker);
            parts.screening.check(&admission).await?;
            let (settings, config) = (Arc::clone(&settings), body.lobby_config);
            let search = Search { criteria, settings, may_create: true, config };
            parts.matchmaker.create_custom_lobby(&search, &seeker).await
        };

        // Reply.
        parts.seating.finish(&seeker, found.await, &settings).await
    }
}

//! `POST /matchmaker/lobbies/find`: a seat for a player, in a lobby that exists or in a new one.

use std::sync::Arc;

use shared::{
    function::{
        config::InvalidConfig,
        instance::Instance,
        operation::Operation,
        seat_parts::{Entered, Opened, SeatParts},
    },
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::{errors::Error, warnings::Warning},
    request::Request,
    rules::criteria::Criteria,
    screening::admission::Admission,
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
        let parts = &self.0;
        // What, who.
        let entered = parts.enter::<FindLobbyRequest>(request, <Self as Operation>::NAME).await?;
        let Opened { body, settings, mut seeker } = match entered {
            Entered::Answered(answer) => return Ok(*answer),
            Entered::Open(opened) => opened,
        };

        // Rules.
        let viewer = request.viewer(parts.edge_secret.as_deref());
        let criteria =
            Criteria::resolve(&body, &settings.namespace, &settings.game, &settings.version, viewer)?;
        request.trace().resolved(&criteria);
        seeker.exclude(body.excluded());
        for mode in &criteria.left_out {
            request.warn(Warning::GameModeLeftOut(mode.clone()));
        }

        // Screening, then store.
        let found = async {
            let admission = Admission::find(&body, &criteria, &settings.version, &seeker);
            parts.screening.check(&admission).await?;
            let may_create = !body.prevent_auto_create_lobby;
            let search = Search { criteria, settings: Arc::clone(&settings), may_create, config: None };
            parts.matchmaker.find(&search, &seeker).await
        };

        // Reply.
        parts.seating.finish(&seeker, found.await, &settings).await
    }
}

//! `POST /matchmaker/lobbies/join`: a seat for a player in a given lobby.

use shared::{
    function::{
        config::InvalidConfig,
        instance::Instance,
        operation::Operation,
        seat_parts::{Entered, Opened, SeatParts},
    },
    models::errors::Error,
    request::Request,
    rules::parties::check_party,
    screening::admission::Admission,
    wire::{FindLobbyResponse, JoinLobbyRequest},
};

/// The operation.
#[derive(Debug)]
pub struct JoinLobby(SeatParts);

impl Operation for JoinLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "join-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        SeatParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        let parts = &self.0;
        // What, who.
        let entered = parts.enter::<JoinLobbyRequest>(request, Self::NAME).await?;
        let Opened { body, settings, seeker } = match entered {
            Entered::Answered(answer) => return Ok(*answer),
            Entered::Open(opened) => opened,
        };

        // Rules.
        let lobby_id = body.named(&settings.namespace.tag_key)?;
        let joinable = parts.matchmaker.joinable(&settings, lobby_id).await?;
        check_party(body.entry.party.size, [joinable.sizes(body.entry.party.size)], &settings.namespace)?;

        // Screening, then store.
        let found = async {
            let admission =
                Admission::join(&body, &joinable.lobby, &joinable.version, &joinable.tags, &seeker);
            parts.screening.check(&admission).await?;
            parts.matchmaker.join(&joinable, &seeker).await
        };

        // Reply.
        parts.seating.finish(&seeker, found.await, &settings).await
    }
}

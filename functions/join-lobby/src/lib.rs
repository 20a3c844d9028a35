//! `POST /matchmaker/lobbies/join`: a seat for a player in a given lobby.

use shared::{
    function::{config::InvalidConfig, instance::Instance, operation::Operation, seat_parts::SeatParts},
    models::{errors::Error, token::TokenKind},
    request::Request,
    rules::parties::check_party,
    screening::admission::Admission,
    seating::{entrance::Entrance, reply::mock_seat},
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
        let SeatParts { auth, matchmaker, screening, seating, ambient, edge_secret } = &self.0;
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = auth.developer(caller).await?
        {
            return mock_seat(host, body, None, auth.keys(), ambient);
        }
        let body = JoinLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = auth.player(caller?, request).await?;
        let seeker = match seating.begin(request, &right, &settings, Self::NAME, body.party.clone()).await? {
            Entrance::Replayed(answer) => return Ok(*answer),
            Entrance::Open(seeker) => seeker,
        };

        // Rules.
        let settings = auth.settings().running(body.version_id.as_deref(), settings).await?;
        let lobby_id = body.named(&settings.namespace.tag_key)?;
        let joinable = matchmaker.joinable(&settings, lobby_id).await?;
        check_party(body.party.size, [joinable.sizes(body.party.size)], &settings.namespace)?;

        // Screening, then store.
        let found = async {
            let admission = Admission::join(&body, &joinable.lobby, &joinable.version, &joinable.tags);
            screening.check(&admission, request, edge_secret.as_deref(), &seeker).await?;
            matchmaker.join(&joinable, &seeker).await
        };

        // Reply.
        seating.finish(&seeker, found.await, &settings).await
    }
}

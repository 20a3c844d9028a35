//! `POST /matchmaker/lobbies/join`: a seat for a player in a given lobby.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    matchmaking::matchmaker::Matchmaker,
    models::{errors::Error, token::TokenKind},
    request::Request,
    rules::parties::check_party,
    screening::admission::{Admission, Screening},
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
    matchmaker: Matchmaker,
    screening: Screening,
    seating: Seating,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl Operation for JoinLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "join-lobby";

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
            return mock_seat(host, body, None, self.auth.keys(), &self.ambient);
        }
        let body = JoinLobbyRequest::read(body)?;

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let seeker =
            match self.seating.begin(request, &right, &settings, Self::NAME, body.party.clone()).await? {
                Entrance::Replayed(answer) => return Ok(*answer),
                Entrance::Open(seeker) => seeker,
            };

        // Rules.
        let settings = self.auth.settings().running(body.version_id.as_deref(), settings).await?;
        let lobby_id = body.named(&settings.namespace.tag_key)?;
        let joinable = self.matchmaker.joinable(&settings, lobby_id).await?;
        check_party(body.party.size, [joinable.sizes(body.party.size)], &settings.namespace)?;

        // Screening, then store.
        let found = async {
            let admission = Admission::join(&body, &joinable.lobby, &joinable.version, &joinable.tags);
            self.screening.check(&admission, request, self.edge_secret.as_deref(), &seeker).await?;
            self.matchmaker.join(&joinable, &seeker).await
        };

        // Reply.
        self.seating.finish(&seeker, found.await, &settings).await
    }
}

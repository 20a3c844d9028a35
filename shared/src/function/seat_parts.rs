//! What the operations that seat players share: their parts, and how a request enters.

use std::sync::Arc;

use crate::{
    auth::{matchmaker::MatchmakerAuth, settings::Settings},
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance},
    matchmaking::matchmaker::Matchmaker,
    models::{errors::Error, lobby_code::LobbyCode, token::TokenKind},
    request::Request,
    screening::admission::Screening,
    seating::{
        entrance::{Entrance, Seating},
        reply::mock_seat,
        seeker::Seeker,
    },
    wire::{FindLobbyResponse, SeatRequest},
};

/// The parts of an operation that seats players.
#[derive(Debug)]
pub struct SeatParts {
    /// Turns the request's token into a right.
    pub auth: MatchmakerAuth,
    /// Finds, creates and joins lobbies.
    pub matchmaker: Matchmaker,
    /// Calls captcha providers and studios' backends.
    pub screening: Screening,
    /// Begins and ends the request.
    pub seating: Seating,
    /// Clock and randomness.
    pub ambient: Ambient,
    /// The secret that authenticates the edge, if there is one.
    pub edge_secret: Option<String>,
}

impl SeatParts {
    /// Those of `instance`.
    ///
    /// # Errors
    /// As [`Instance::screening`] and [`Instance::seating`].
    pub fn of(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            matchmaker: instance.matchmaker()?,
            screening: instance.screening()?,
            seating: instance.seating()?,
            ambient: instance.ambient(),
            edge_secret: instance.edge_secret(),
        })
    }

    /// Reads a `request` to `operation`, and begins it for the caller.
    ///
    /// # Errors
    /// As [`SeatRequest::read`], [`Seating::begin`] and
    /// [`SettingsCache::running`](crate::auth::settings::SettingsCache::running); refusals of the token.
    pub async fn enter<B: SeatRequest>(
        &self,
        request: &Request,
        operation: &str,
    ) -> Result<Entered<B>, Error> {
        // What: any JSON is accepted from a developer, only the right types from others.
        let body = request.json()?;
        let caller = self.auth.caller(request, TokenKind::Public);
        if let Ok(caller) = &caller
            && let Some(host) = self.auth.developer(caller).await?
        {
            request.trace().open();
            let mock =
                mock_seat(host, body, B::CREATES.then(LobbyCode::mock), self.auth.keys(), &self.ambient)?;
            return Ok(Entered::Answered(Box::new(mock)));
        }
        let body = B::read(body)?;

        // Who.
        let (right, settings) = self.auth.player(caller?, request).await?;
        let entry = body.entry();
        match self.seating.begin(request, &right, &settings, operation, entry.party.clone()).await? {
            Entrance::Replayed(answer) => Ok(Entered::Answered(answer)),
            Entrance::Open(seeker) => {
                let settings = self.auth.settings().running(entry.version_id.as_deref(), settings).await?;
                Ok(Entered::Open(Opened { body, settings, seeker }))
            }
        }
    }
}

/// How a request for seats enters.
#[derive(Debug)]
pub enum Entered<B> {
    /// It has its response: a mock's, or that of an earlier request with its key.
    Answered(Box<FindLobbyResponse>),
    /// It continues with the match.
    Open(Opened<B>),
}

/// A request for seats that continues with the match.
#[derive(Debug)]
pub struct Opened<B> {
    /// What it asks for.
    pub body: B,
    /// The namespace with the game and the version that it runs.
    pub settings: Arc<Settings>,
    /// Who asks.
    pub seeker: Box<Seeker>,
}

//! What the operations that seat players share.

use crate::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance},
    matchmaking::matchmaker::Matchmaker,
    screening::admission::Screening,
    seating::entrance::Seating,
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
}

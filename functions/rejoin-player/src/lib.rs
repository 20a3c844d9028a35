//! `POST /matchmaker/players/rejoin`: gives a player who comes back a fresh token for the same seat.
//!
//! The player token in the body is the right, so that a page needs nothing but what it kept over a reload.

use shared::{
    auth::matchmaker::{OwnSeat, PlayerAuth},
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::returning::Returning,
    models::{errors::Error, warnings::Warning},
    request::Request,
    seating::reply::mock_seats_of,
    wire::{FindLobbyResponse, PlayerRequest},
};

/// The operation.
#[derive(Debug)]
pub struct RejoinPlayer {
    auth: PlayerAuth,
    returning: Returning,
    ambient: Ambient,
}

impl Operation for RejoinPlayer {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "rejoin-player";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: PlayerAuth::new(instance.keys()?, instance.ambient()),
            returning: Returning::new(instance.store()?, instance.matchmaker_auth()?, instance.ambient()),
            ambient: instance.ambient(),
        })
    }

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        let body: PlayerRequest = request.body()?;
        match self.auth.own_seat(&body.player_token)? {
            OwnSeat::Real(seat) => self.returning.rejoin(&seat).await,
            OwnSeat::Mock(player) => {
                request.warn(Warning::Mock);
                let player = player.again();
                let (host, players) = (player.host.clone(), [player]);
                mock_seats_of(&host, &players, None, self.auth.keys(), &self.ambient)
            }
        }
    }
}

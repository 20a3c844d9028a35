//! `POST /matchmaker/players/leave`: frees the seat of a player who gives it up before connecting.
//!
//! The player token in the body is the right, so that a page that closes can send it as a beacon, which
//! carries no headers.

use shared::{
    auth::matchmaker::{OwnSeat, PlayerAuth},
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::freed_seats::FreedSeats,
    models::{errors::Error, warnings::Warning},
    request::Request,
    wire::{PlayerRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct LeaveLobby {
    auth: PlayerAuth,
    freed: FreedSeats,
}

impl Operation for LeaveLobby {
    type Output = Empty;

    const NAME: &'static str = "leave-lobby";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: PlayerAuth::new(instance.keys()?, instance.ambient()),
            freed: FreedSeats::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let body: PlayerRequest = request.body()?;
        match self.auth.own_seat(&body.player_token)? {
            OwnSeat::Real(seat) => self.freed.give_up(&seat).await?,
            OwnSeat::Mock(_) => request.warn(Warning::Mock),
        }
        Ok(Empty {})
    }
}

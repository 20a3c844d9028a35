//! Waiting for a lobby until its game server reports it ready.

use std::time::Duration;

use crate::{
    base::{ambient::Timestamp, pauses::Pauses},
    matchmaking::{limits::FIND_DEADLINE, matchmaker::Matchmaker},
    models::{
        errors::Error,
        lobby::{READY_WAIT_MAX, Stage},
    },
    seating::{reply::Found, seeker::Seeker},
};

/// Pauses before looks: some twenty reads in all.
const POLL_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(200)).up_to(Duration::from_millis(1_600));

impl Matchmaker {
    /// Returns the seat once its lobby is ready, reading the lobby repeatedly until then; `None` if the lobby
    /// ends before, and the seat with it.
    ///
    /// # Errors
    /// [`Error::LobbyStartTimeout`] when the lobby did not become ready within 25 s of the request (the seat
    /// is then given back); [`Error::TooManyPlayersFromSource`] when another request got the client's place
    /// (the seat is given back); [`Error::Contention`] when another run of the request replaced this one;
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub(super) async fn until_ready(
        &self,
        mut found: Found,
        seeker: &Seeker,
    ) -> Result<Option<Found>, Error> {
        // First, so that a crash during the wait leaves no hold that names another lobby.
        match seeker.settle(&found).await {
            Ok(()) => {}
            Err(refusal @ Error::TooManyPlayersFromSource { .. }) => {
                return Err(self.give_back(found, seeker, refusal).await?);
            }
            Err(error) => return Err(error),
        }
        let deadline = seeker.began_at() + READY_WAIT_MAX;
        let mut looks = 0;
        while found.lobby.stage == Stage::Starting {
            let now = self.ambient.now();
            if now >= deadline {
                return Err(self.give_back(found, seeker, Error::LobbyStartTimeout).await?);
            }
            self.ambient.sleep(POLL_PAUSES.nth(looks).min(deadline.since(now))).await;
            looks += 1;
            seeker.stay().await?;
            let Some(lobby) = self.store.lobby(&found.lobby.lobby_id).await? else { return Ok(None) };
            found.lobby = lobby;
        }
        let is_there = found.lobby.stage == Stage::Ready && found.lobby.has_seat(found.seats.first());
        Ok(is_there.then_some(found))
    }

    /// Gives the seats back after `refusal`, which it returns, unless a retry of the request continues with
    /// it. If that fails, the seat lapses once the lobby is ready.
    async fn give_back(&self, found: Found, seeker: &Seeker, refusal: Error) -> Result<Error, Error> {
        seeker.end_record(&refusal).await?;
        self.store.give_back(found.lobby, &found.seats, self.ambient.now()).await?;
        Ok(refusal)
    }
}

/// How long a request whose lobby ended before it was ready may look for another seat.
///
/// # Errors
/// [`Error::LobbyStartTimeout`] when its time is over.
pub(super) fn deadline_after(seeker: &Seeker, now: Timestamp) -> Result<Timestamp, Error> {
    let end = seeker.began_at() + READY_WAIT_MAX;
    if now < end { Ok(end.min(now + FIND_DEADLINE)) } else { Err(Error::LobbyStartTimeout) }
}

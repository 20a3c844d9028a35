//! Waiting for a lobby until its game server reports it ready.

use std::time::Duration;

use crate::{
    base::{ambient::Timestamp, pauses::Pauses},
    matchmaking::{limits::FIND_DEADLINE, matchmaker::Matchmaker},
    models::{
        errors::Error,
        launch::{LaunchWait, StartFailure, Starting},
        lobby::{Lobby, READY_WAIT_MAX, Stage},
    },
    seating::{reply::Found, seeker::Seeker},
};

/// Pauses before looks: some twenty reads in all.
const POLL_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(200)).up_to(Duration::from_millis(1_600));
/// The same for a game server that is started. The first looks come soon: a process on the same machine
/// registers within a tenth of a second, however long earlier ones took elsewhere.
const LAUNCH_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(50)).up_to(Duration::from_millis(800));
/// How long a request waits for a server that is started; a later one is left to the repetition.
const LAUNCH_AWAITED: Duration = Duration::from_secs(8);
/// The longest time after which a client is to repeat the request.
const REPEAT_AFTER_MAX: Duration = Duration::from_secs(10);

impl Matchmaker {
    /// Returns the seat once its lobby is ready, reading the lobby repeatedly until then; `None` if the lobby
    /// ends before, and the seat with it.
    ///
    /// # Errors
    /// [`Error::LobbyStartTimeout`] when the lobby did not become ready within 25 s of the request (the seat
    /// is then given back); [`Error::ServerStarting`] when its game server is still to be started, at once if
    /// it is expected in more than 8 s (the seat is then given back, unless a repetition can go on with it);
    /// [`Error::ServerStartFailed`] when it could not be; [`Error::TooManyPlayersFromSource`] when another
    /// request got the client's place (the seat is given back); [`Error::Contention`] when another run of the
    /// request replaced this one; [`Error::Unavailable`], [`Error::Bug`].
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
            let launch = found.lobby.launch;
            let is_far = looks == 0 && launch.is_some_and(|wait| wait.expected_at > now + LAUNCH_AWAITED);
            if now >= deadline || is_far {
                return Err(match launch {
                    Some(wait) => self.leave_waiting(found, seeker, wait).await?,
                    None => self.give_back(found, seeker, Error::LobbyStartTimeout).await?,
                });
            }
            let pauses = if launch.is_some() { LAUNCH_PAUSES } else { POLL_PAUSES };
            self.ambient.sleep(pauses.nth(looks).min(deadline.since(now))).await;
            looks += 1;
            seeker.stay().await?;
            let Some(lobby) = self.store.lobby(&found.lobby.lobby_id).await? else { return Ok(None) };
            if lobby.stage == Stage::Ended && lobby.launch.is_some() {
                return Err(self.failed_start(&found.lobby).await?);
            }
            found.lobby = lobby;
        }
        let is_there = found.lobby.stage == Stage::Ready && found.lobby.has_seat(found.seats.first());
        Ok(is_there.then_some(found))
    }

    /// Ends the request while its game server is started: a repetition with its key goes on with the seat,
    /// which other requests give back.
    async fn leave_waiting(&self, found: Found, seeker: &Seeker, wait: LaunchWait) -> Result<Error, Error> {
        let is_kept = seeker.interrupt().await?;
        let now = self.ambient.now();
        let left = match wait.expected_at.since(now) {
            // A server that is late is expected to take as long again. Players who came together and return
            // at once would not see the seats that they have just given back.
            Duration::ZERO if !is_kept => now.since(wait.requested_at),
            left => left,
        };
        let starting = Starting {
            lobby_id: found.lobby.lobby_id.clone(),
            wait,
            retry_after: left.min(REPEAT_AFTER_MAX),
        };
        let refusal = Error::ServerStarting(Box::new(starting));
        if is_kept { Ok(refusal) } else { self.give_back(found, seeker, refusal).await }
    }

    /// Why the game server of `lobby`, which ended before it was ready, could not be started.
    async fn failed_start(&self, lobby: &Lobby) -> Result<Error, Error> {
        let server = match &lobby.server {
            Some(server) => self.store.server(server).await?,
            None => None,
        };
        let reason = server.and_then(|server| server.failure);
        Ok(Error::ServerStartFailed(Box::new(StartFailure {
            region_id: lobby.pool.region_id.clone(),
            reason: reason.unwrap_or_else(|| "its lobby ended before it registered".to_owned()),
            retry_after: Duration::ZERO,
        })))
    }

    /// Gives the seats back after `refusal`, which it returns, unless a retry of the request continues with
    /// it. If that fails, the seat lapses once the lobby is ready.
    async fn give_back(&self, found: Found, seeker: &Seeker, refusal: Error) -> Result<Error, Error> {
        seeker.give_back(found.lobby, &found.seats, &refusal).await?;
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

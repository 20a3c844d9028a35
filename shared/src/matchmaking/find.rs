//! Matching: finds a seat in an existing lobby, else creates a lobby, else reports why it cannot.
//!
//! A quiet find is one query of the index (a hint) and one conditional write on the lobby (the truth). From
//! five finds a second on, a find uses the instance's memory. Creation is elected, see
//! [`crate::store::creation`]. Every loop is bounded: a find that loses every race ends in
//! [`Error::Contention`] (I3).

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        contention::Contention,
        limits::{FIND_DEADLINE, ROUND_PAUSES, ROUNDS_MAX},
        matchmaker::Matchmaker,
        outcomes::{Step, refusal},
        search::{Existing, Search},
        waiting::deadline_after,
    },
    models::{errors::Error, lobby::SeatState},
    seating::{reply::Found, seeker::Seeker},
    wire::explanation::{self, FindOutcome},
};

impl Matchmaker {
    /// Finds a seat: in the fullest fitting lobby, else in a new one. Where its lobby ends before it is
    /// ready, it finds another seat.
    ///
    /// # Errors
    /// [`Error::NoAvailableLobbies`], [`Error::TooManyLobbies`], [`Error::NoServerAvailable`],
    /// [`Error::Contention`], [`Error::LobbyStartTimeout`]; the errors of [`Seeker::attempt`];
    /// [`Error::Unavailable`], [`Error::Bug`]. An error may leave a seat reserved, which lapses by itself.
    pub async fn find(&self, search: &Search, seeker: &Seeker) -> Result<Found, Error> {
        let began_at = self.ambient.now();
        let mut found = match self.find_interrupted(seeker).await? {
            Some(found) => found,
            None => self.find_seat(search, seeker, began_at + FIND_DEADLINE).await?,
        };
        loop {
            if let Some(found) = self.until_ready(found, seeker).await? {
                return Ok(found);
            }
            found = self.find_seat(search, seeker, deadline_after(seeker, self.ambient.now())?).await?;
        }
    }

    /// The seat that an earlier run of the same request took before it crashed, if any.
    pub(super) async fn find_interrupted(&self, seeker: &Seeker) -> Result<Option<Found>, Error> {
        let Some(aim) = seeker.interrupted() else { return Ok(None) };
        let Some(lobby) = self.store.lobby(&aim.lobby_id).await? else { return Ok(None) };
        if lobby.seat_state(seeker.seats().first(), self.ambient.now()) != SeatState::Held {
            return Ok(None);
        }
        let taken_at = seeker.resume(aim.clone()).await?;
        Ok(Some(Found {
            lobby,
            seats: seeker.seats().clone(),
            code: None,
            taken_at,
            outcome: FindOutcome::Joined,
        }))
    }

    /// Looks for a seat, creates a lobby where there is none, and retries while other finds are quicker.
    async fn find_seat(&self, search: &Search, seeker: &Seeker, deadline: Timestamp) -> Result<Found, Error> {
        let pools = &search.criteria.pools;
        self.pools.begin_find(pools, self.ambient.now());
        for round in 0..ROUNDS_MAX {
            let is_loaded = self.pools.contention(pools, self.ambient.now()) >= Contention::Loaded;
            if is_loaded
                && round == 0
                && let Some(found) = self.take_in_used(pools, seeker).await?
            {
                return Ok(found);
            }
            let ahead =
                if search.may_create && is_loaded { self.find_ahead(pools, seeker).await? } else { None };
            let existing = match ahead {
                Some(existing) => existing,
                None => self.find_by_comparing(search, seeker, search.may_create, deadline).await?,
            };
            let has_more = match existing {
                Existing::Taken(found) => return Ok(*found),
                Existing::None { has_more } => has_more,
            };
            if !search.may_create {
                seeker.trace().creation(explanation::Creation::Prevented);
                self.pools.note_in_vain(pools);
                return Err(Error::NoAvailableLobbies);
            }
            seeker.trace().creation(explanation::Creation::NothingJoinable);
            if let Some(reason) = self.known_shortage(search, true, seeker).await? {
                self.pools.note_in_vain(pools);
                return Err(refusal(reason, &search.criteria.new_lobby.pool, seeker.trace()));
            }
            match self.create(search, seeker, round > 0).await? {
                Step::Found(found) => return Ok(Self::counted(*found, has_more)),
                Step::LookAgain => {}
                Step::NoCapacity(reason) => {
                    // Seats may have come into sight since the look above.
                    return match self.find_by_comparing(search, seeker, false, deadline).await? {
                        Existing::Taken(found) => Ok(*found),
                        Existing::None { .. } => {
                            self.pools.note_in_vain(pools);
                            Err(refusal(reason, &search.criteria.new_lobby.pool, seeker.trace()))
                        }
                    };
                }
            }
            if self.ambient.now() >= deadline {
                break;
            }
            ROUND_PAUSES.wait(round, &self.ambient).await;
        }
        Err(Error::Contention)
    }

    /// Counts as a race a lobby created after a look that left lobbies aside which may have had a seat (I9).
    fn counted(mut found: Found, has_more: bool) -> Found {
        if has_more && found.outcome == (FindOutcome::Created { is_race_create: false }) {
            found.outcome = FindOutcome::Created { is_race_create: true };
        }
        found
    }
}

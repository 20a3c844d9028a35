//! Matching: finds a seat in an existing lobby, else creates a lobby, else reports why it cannot.
//!
//! A quiet find is one query of the index (a hint) and one conditional write on the lobby (the truth). From
//! five finds a second on, a find uses the instance's memory. Creation is elected, see
//! [`crate::store::creation`]. Every loop is bounded: a find that loses every race ends in
//! [`Error::Contention`] (I3).

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        limits::{FIND_DEADLINE, ROUNDS_MAX, pause_after},
        matchmaker::Matchmaker,
        outcomes::{NoCapacity, Step, refusal},
        search::{Existing, Search, is_beside},
        waiting::deadline_after,
    },
    models::{errors::Error, lobby::SeatState},
    rules::criteria::{Criteria, SearchedPool},
    seating::{reply::Found, seeker::Seeker},
    wire::explanation::{self, FindOutcome, RegionOutcome},
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
                seeker.trace().chosen(&found.lobby.pool.region_id);
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
            let existing = self.find_existing(pools, search.may_create, seeker, (round == 0, deadline));
            let has_more = match existing.await? {
                Existing::Taken(found) => return Ok(*found),
                Existing::None { has_more } => has_more,
            };
            for searched in pools {
                seeker.trace().region(&searched.pool.region_id, RegionOutcome::NothingJoinable);
            }
            if !search.may_create {
                seeker.trace().creation(explanation::Creation::Prevented);
                self.scans.note_in_vain(pools);
                return Err(Error::NoAvailableLobbies);
            }
            seeker.trace().creation(explanation::Creation::NothingJoinable);
            match self.create_nearest(search, seeker, round, deadline).await? {
                Ok(Step::Found(found)) => return Ok(Self::counted(*found, has_more)),
                Ok(Step::LookAgain) => {}
                Ok(Step::NoCapacity(reason)) => {
                    // Seats may have come into sight since the look above.
                    let mut pools = [pools.as_slice(), search.criteria.beyond.as_slice()].concat();
                    pools.sort_by_key(|searched| searched.distance);
                    return self.find_without_creating(search, &pools, reason, seeker, deadline).await;
                }
                Err(reason) => {
                    let beyond = &search.criteria.beyond;
                    return self.find_without_creating(search, beyond, reason, seeker, deadline).await;
                }
            }
            if !pause_after(round, deadline, &self.ambient).await {
                break;
            }
        }
        Err(Error::Contention)
    }

    /// Takes a seat in `pools` where no lobby can be created.
    ///
    /// # Errors
    /// The refusal for this `reason`.
    async fn find_without_creating(
        &self,
        search: &Search,
        pools: &[SearchedPool],
        reason: NoCapacity,
        seeker: &Seeker,
        deadline: Timestamp,
    ) -> Result<Found, Error> {
        if !pools.is_empty()
            && let Existing::Taken(found) = self.find_by_comparing(pools, seeker, false, deadline).await?
        {
            return Ok(*found);
        }
        let Criteria { beyond, elsewhere, .. } = &search.criteria;
        let is_creatable = |searched: &&SearchedPool| elsewhere.iter().any(|new| is_beside(searched, new));
        for searched in beyond.iter().filter(|searched| !is_creatable(searched)) {
            seeker.trace().region(&searched.pool.region_id, RegionOutcome::NothingJoinable);
        }
        self.scans.note_in_vain(&search.criteria.pools);
        Err(refusal(reason, &search.criteria.new_lobby.pool, seeker.trace()))
    }

    /// Counts as a race a lobby created after a look that left lobbies aside which may have had a seat (I9).
    fn counted(mut found: Found, has_more: bool) -> Found {
        if has_more && found.outcome == (FindOutcome::Created { is_race_create: false }) {
            found.outcome = FindOutcome::Created { is_race_create: true };
        }
        found
    }
}

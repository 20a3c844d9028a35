//! Taking a seat in one lobby.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        hints,
        limits::UNSHARED_FOR,
        matchmaker::Matchmaker,
        memory::pools::KnownLobby,
        search::{Claimed, searched},
    },
    models::{
        availability::{Access, Refusal},
        errors::Error,
        lobby::Lobby,
        seats::Seats,
    },
    rules::criteria::SearchedPool,
    seating::{
        reply::Found,
        seeker::{Seeker, Tried},
    },
    store::{
        lobbies::Candidate,
        seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
    },
    wire::explanation::{FindOutcome, Reason},
};

impl Matchmaker {
    /// Takes a seat where an earlier find of this instance took one, if memory shows another there.
    pub(super) async fn take_in_used(
        &self,
        pools: &[SearchedPool],
        seeker: &Seeker,
    ) -> Result<Option<Found>, Error> {
        let now = self.ambient.now();
        let Some(known) = self.pools.use_known(pools, seeker.seats().count(), now) else { return Ok(None) };
        let Some(searched) = searched(pools, &known.lobby.pool) else { return Ok(None) };
        Ok(self.take(searched, claimed(&known, seeker.seats(), now), seeker).await?.ok())
    }

    /// Takes a seat in one lobby, or returns why it has none.
    pub(super) async fn take(
        &self,
        searched: &SearchedPool,
        claimed: Claimed,
        seeker: &Seeker,
    ) -> Result<Result<Found, Refusal>, Error> {
        if seeker.excludes(&claimed.lobby_id) {
            seeker.trace().refused(Some(Reason::Excluded));
            return Ok(Err(Refusal::Excluded));
        }
        let mut claim = SeatClaim {
            lobby_id: claimed.lobby_id,
            access: Access::Find(claimed.pool, searched.tag_digests.clone()),
            seats: seeker.seats().clone(),
            until: Timestamp::default(),
            capacity: claimed.capacity,
            hiding: claimed.hiding,
        };
        let mut tried = self.claim(&mut claim, searched.reservation, seeker).await;
        if matches!(tried, Err(Error::Unavailable(_))) && claim.hiding != Hiding::No {
            // Retries without a write of the index, which may be what was throttled.
            claim.hiding = Hiding::No;
            tried = self.claim(&mut claim, searched.reservation, seeker).await;
        }
        let Tried { outcome, at: now, taken_at } = tried?;
        match outcome {
            SeatOutcome::Taken(lobby) => {
                // Seats of a lobby out of sight are promised to others, unless this instance made it for
                // itself.
                let is_promised = lobby.joinable_from.is_some_and(|from| from > now);
                self.learn(searched, (&lobby, claim.seats.count()), now, is_promised).await?;
                Ok(Ok(Found {
                    lobby: *lobby,
                    seats: claim.seats,
                    code: None,
                    taken_at,
                    outcome: FindOutcome::Joined,
                }))
            }
            SeatOutcome::Refused(refusal, seen) => {
                let is_race = refusal == Refusal::Full;
                seeker.trace().refused(if is_race { Some(Reason::RaceLost) } else { Reason::of(refusal) });
                match &seen {
                    // It is full for this party alone.
                    Some(lobby) if refusal == Refusal::TooFull => {
                        self.pools.correct_lobby(searched, lobby, now);
                    }
                    _ if refusal == Refusal::Excluded => {}
                    _ => self.pools.forget_lobby(searched, &claim.lobby_id),
                }
                if let Some(lobby) = seen {
                    self.bursts.note_seen(&lobby, now);
                    let pools = std::slice::from_ref(searched);
                    hints::correct(&self.store, &self.ambient, &[*lobby], pools, seeker, now).await?;
                }
                Ok(Err(refusal))
            }
        }
    }

    /// Takes a seat in a lobby as the index shows it, without reading it first; `None` if it is of none of
    /// `pools`.
    pub(super) async fn take_shown(
        &self,
        pools: &[SearchedPool],
        shown: &Candidate,
        seeker: &Seeker,
    ) -> Result<Option<Result<Found, Refusal>>, Error> {
        let Some(searched) = searched(pools, &shown.pool) else { return Ok(None) };
        let now = self.ambient.now();
        let hiding = self.pools.hiding(searched, &shown.lobby_id, seeker.seats(), now);
        let capacity = PartyCapacity::Assumed(searched.party_capacity);
        let claimed =
            Claimed { pool: shown.pool.clone(), lobby_id: shown.lobby_id.clone(), capacity, hiding };
        self.take_looked_up(searched, claimed, seeker).await.map(Some)
    }

    /// Sends the write for a seat, which lasts for `reservation` from then on, or less
    /// ([`Seeker::reservation`]).
    pub(super) async fn claim(
        &self,
        claim: &mut SeatClaim,
        reservation: Duration,
        seeker: &Seeker,
    ) -> Result<Tried<SeatOutcome>, Error> {
        let lobby_id = claim.lobby_id.clone();
        let take = async |now: Timestamp| {
            if seeker.was_removed_from(&lobby_id) {
                return Ok(SeatOutcome::Refused(Refusal::Excluded, None));
            }
            claim.until = now + seeker.reservation(reservation);
            self.store.take_seat(claim, now).await
        };
        seeker.attempt(&lobby_id, self.ambient.now(), take, SeatOutcome::is_refused).await
    }

    /// Remembers the lobby of so many `seats` just taken, unless its other seats are promised to other finds.
    /// Hides a full one, and from parties one without room for them.
    pub(super) async fn learn(
        &self,
        searched: &SearchedPool,
        (lobby, seats): (&Lobby, u32),
        now: Timestamp,
        is_promised: bool,
    ) -> Result<(), Error> {
        self.bursts.note_seen(lobby, now);
        if lobby.taken >= lobby.max_players {
            self.pools.forget_lobby(searched, &lobby.lobby_id);
        } else if lobby.joinable_from.is_some() {
            self.pools.remember_lobby(searched, (lobby, seats), is_promised, now);
        }
        self.hide_if_full(lobby, now).await
    }

    /// Hides `lobby`, in which seats were just taken, if those were its last, and from parties if it has no
    /// room for them any more.
    pub(super) async fn hide_if_full(&self, lobby: &Lobby, now: Timestamp) -> Result<(), Error> {
        if lobby.joinable_from.is_none() || lobby.taken < lobby.max_players {
            let is_in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
            let has_changed = lobby.room.is_some() != lobby.room_at(now).is_some();
            let is_noted = !has_changed || (lobby.room.is_none() && !is_in_sight);
            return if is_noted { Ok(()) } else { hints::note_room(&self.store, lobby, now).await };
        }
        self.bursts.note_seen(lobby, now);
        match lobby.joinable_from {
            Some(from) if from <= now + UNSHARED_FOR || lobby.is_hidden_too_long() => {
                hints::hide_full(&self.store, lobby).await
            }
            _ => Ok(()),
        }
    }

    /// Takes a seat in a lobby as it was read. If it is the last one, the same write hides the lobby.
    pub(super) async fn take_seen(
        &self,
        searched: &SearchedPool,
        known: &KnownLobby,
        seeker: &Seeker,
    ) -> Result<Result<Found, Refusal>, Error> {
        let claimed = claimed(known, seeker.seats(), self.ambient.now());
        self.take_looked_up(searched, claimed, seeker).await
    }

    /// The same in a lobby that a look showed: one without a seat is a sign of other finds.
    async fn take_looked_up(
        &self,
        searched: &SearchedPool,
        claimed: Claimed,
        seeker: &Seeker,
    ) -> Result<Result<Found, Refusal>, Error> {
        let now = self.ambient.now();
        let taken = self.take(searched, claimed, seeker).await?;
        if taken.as_ref().is_err_and(|refusal| *refusal != Refusal::Excluded) {
            self.pools.note_lost_seat(searched, now);
        }
        Ok(taken)
    }
}

fn claimed(known: &KnownLobby, seats: &Seats, now: Timestamp) -> Claimed {
    let Lobby { pool, lobby_id, .. } = &known.lobby;
    Claimed {
        pool: pool.clone(),
        lobby_id: lobby_id.clone(),
        capacity: PartyCapacity::Known(known.lobby.capacity_for_finds(seats.count())),
        hiding: known.hiding(seats, now),
    }
}

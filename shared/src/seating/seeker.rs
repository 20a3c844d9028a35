//! One request for a seat, or the seats of a party: the notes that it writes before it takes them, and its
//! holds under a limit.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::try_join_all;

use crate::{
    auth::settings::Settings,
    base::ambient::{Ambient, Timestamp, within},
    models::{
        client::Client,
        errors::Error,
        ids::LobbyId,
        lobby::{EndCause, Lobby, Stage},
        seats::{Party, Seats},
        standing::{SHORT_RESERVATION, Standing},
    },
    request::trace::Trace,
    seating::{
        fates::{Fate, fate, is_at_cap, lobbies_of, plan},
        pressure::Pressure,
        reply::Found,
    },
    store::{
        client::Store,
        ending::EndOutcome,
        holds::{ClientHolds, Compared, Hold, HoldOutcome},
        replays::{RUN_LEASE, Run},
    },
};

/// Holds withdrawn at the same time: they are parts of one item.
const WRITES_AT_ONCE: usize = 16;
/// Holds that are judged again before a client is refused again within a second.
const JUDGED_AGAIN_MAX: usize = 8;
/// Tries to note a hold while others free the same stale ones.
const HOLD_ATTEMPTS: usize = 8;

/// How old the note of a lobby may be when a try begins: far younger than the run's lease.
const AIM_AGE_MAX: Duration = Duration::from_secs(2);
/// How old the note may be while the run waits for the lobby to start.
const STAY_AGE_MAX: Duration = Duration::from_secs(5);
/// How long before the end of the run's lease a try is given up: longer than a sent write may take to arrive.
const LEASE_MARGIN: Duration = Duration::from_millis(1_500);

/// One request for seats that it takes together.
#[derive(Debug)]
pub struct Seeker {
    pub(super) store: Store,
    pub(super) ambient: Ambient,
    pub(super) began_at: Timestamp,
    pub(super) seats: Seats,
    pub(super) client: Client,
    /// The client's address; `None` when the gateway reports none.
    pub(super) client_ip: Option<IpAddr>,
    /// The seats that the client may hold; `None` without a cap.
    pub(super) holds_max: Option<u32>,
    /// So many seats, for which this instance refused the client another a moment ago.
    pub(super) was_refused_at: Option<u32>,
    pub(super) settings: Arc<Settings>,
    pub(super) pressure: Arc<Pressure>,
    pub(super) run: Option<Run>,
    pub(super) interrupted: Option<Aim>,
    pub(super) trace: Trace,
    /// The request's players.
    pub(super) party: Party,
    /// Lobbies in which the request wants no seat.
    pub(super) excluded: Vec<LobbyId>,
    pub(super) progress: Mutex<Progress>,
}

/// A lobby in which a run took, or is about to take, the seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// The time in the seat's token.
    pub taken_at: Timestamp,
}

/// A try at a seat.
#[derive(Debug)]
pub struct Tried<T> {
    /// What its write came to.
    pub outcome: T,
    /// When that was sent.
    pub at: Timestamp,
    /// The time in the seat's token.
    pub taken_at: Timestamp,
}

/// An aim, and when its run noted it.
#[derive(Clone, Debug)]
pub(super) struct DatedAim {
    aim: Aim,
    at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) is_claimed: bool,
    /// Whether providers and backends may be called for it.
    pub(super) is_cleared: bool,
    pub(super) noted: Option<DatedAim>,
    /// Whether the outcome of the try there is unknown.
    pub(super) is_uncertain: bool,
    /// The hold of the first of its seats; those of the others name the same lobby and time.
    pub(super) hold: Option<Hold>,
    /// The client's holds as they were last read or written.
    pub(super) client: Option<ClientHolds>,
    /// Whether the client gets a seat for a short time only.
    pub(super) is_on_trial: bool,
    /// Whether another run of the same request has replaced this one.
    pub(super) is_overtaken: bool,
}

impl Seeker {
    /// The request's seats.
    #[must_use]
    pub const fn seats(&self) -> &Seats {
        &self.seats
    }

    /// Whether it is for one player, not for a party.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.seats.count() == 1
    }

    /// The trace of its request.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Who asks.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The client's address; `None` when the gateway reports none.
    #[must_use]
    pub const fn client_ip(&self) -> Option<IpAddr> {
        self.client_ip
    }

    /// Wants no seat in the `excluded` lobbies.
    pub fn exclude(&mut self, excluded: Vec<LobbyId>) {
        self.excluded = excluded;
    }

    /// Whether the request gets no seat in a lobby: it wants none there, or its client is kept out, which is
    /// known once its hold is noted.
    #[must_use]
    pub fn excludes(&self, lobby_id: &LobbyId) -> bool {
        self.excluded.contains(lobby_id) || self.was_removed_from(lobby_id)
    }

    /// Whether its client is kept out of a lobby from which one of its players was removed.
    #[must_use]
    pub fn was_removed_from(&self, lobby_id: &LobbyId) -> bool {
        let now = self.ambient.now();
        self.progress().client.as_ref().is_some_and(|client| client.was_removed_from(lobby_id, now))
    }

    /// When its request began.
    #[must_use]
    pub const fn began_at(&self) -> Timestamp {
        self.began_at
    }

    /// Where an earlier run of the same request may have taken the seat, before it crashed.
    #[must_use]
    pub const fn interrupted(&self) -> Option<&Aim> {
        self.interrupted.as_ref()
    }

    /// Refuses a client at its cap at once if it was refused a moment ago and still holds its seats: then it
    /// costs no look and no write. One consistent read unit, and half a one for each lobby of its oldest
    /// holds; none for other clients.
    ///
    /// # Errors
    /// [`Error::TooManyPlayersFromSource`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn refuse_again(&self) -> Result<(), Error> {
        let (Some((client, holds_max)), Some(limit)) = (self.capped(), self.was_refused_at) else {
            return Ok(());
        };
        let limit = limit.min(holds_max);
        let (now, ClientHolds { holds, standing, .. }) =
            (self.ambient.now(), self.store.holds(client).await?);
        let has_more_standing = limit < holds_max && standing.is_proven;
        let seats = self.seats.count();
        if self.is_held_before(&holds) || has_more_standing || !is_at_cap(holds.len(), seats, limit) {
            return Ok(());
        }
        // The oldest come first: those are the likeliest to be stale.
        let (judged, young) = holds.split_at(holds.len().min(JUDGED_AGAIN_MAX));
        let lobbies = self.store.lobbies(&lobbies_of(judged)).await?;
        // They may lag: a hold that seems stale is for the find to judge, and so is a player who connected.
        let fate = judged.iter().map(|hold| fate(hold, &lobbies, now));
        let (mut held, mut is_proven) = (young.len(), false);
        for fate in fate {
            held += usize::from(fate.stands());
            is_proven |= fate.proves();
        }
        if (is_proven && limit < holds_max) || !is_at_cap(held, seats, limit) {
            return Ok(());
        }
        Err(Error::TooManyPlayersFromSource { limit: Some(limit) })
    }

    /// Claims the request for this run, once, and checks that its client may hold another seat, before it
    /// calls a captcha provider or backend. One write unit with an `Idempotency-Key`, one consistent read
    /// unit under a cap.
    ///
    /// # Errors
    /// [`Error::TooManyPlayersFromSource`]; [`Error::Contention`] when another run of the request is under
    /// way; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn before_screening(&self) -> Result<(), Error> {
        if self.progress().is_cleared {
            return Ok(());
        }
        if let Some(run) = &self.run {
            let aim = self.interrupted.as_ref().map(|aim| (&aim.lobby_id, aim.taken_at));
            if !self.store.aim_run(run, aim, self.ambient.now()).await? {
                return Err(self.overtaken());
            }
            self.progress().is_claimed = true;
        }
        if self.is_at_cap().await? {
            return Err(self.refusal_at_cap());
        }
        self.progress().is_cleared = true;
        Ok(())
    }

    /// Tries to take the seat in `lobby_id`: notes that the run is about to, sends the write of `take`, and
    /// keeps in mind that the seat may be taken there, unless the write `is_refused` for certain. `take` gets
    /// the time after the notes; `now` is that of the seat's token.
    ///
    /// The order is what keeps I5: a retry waits or goes on where this run may have the seat, and a write
    /// that outlasts the run's lease would take a second seat besides that of the retry, so it is given up.
    ///
    /// Under a cap one write unit the first time, with an `Idempotency-Key` one for each lobby, otherwise
    /// none.
    ///
    /// # Errors
    /// The errors of `take`; [`Error::TooManyPlayersFromSource`]; [`Error::Contention`] when another run of
    /// the request is under way, which ends this one; [`Error::Unavailable`], also when the run may have
    /// taken the seat, here or in another lobby, and [`Error::Bug`].
    pub async fn attempt<T>(
        &self,
        lobby_id: &LobbyId,
        now: Timestamp,
        take: impl AsyncFnOnce(Timestamp) -> Result<T, Error>,
        is_refused: impl FnOnce(&T) -> bool,
    ) -> Result<Tried<T>, Error> {
        let taken_at = self.aim(Aim { lobby_id: lobby_id.clone(), taken_at: now }, now).await?;
        let at = self.ambient.now();
        let outcome = self.while_noted(take(at)).await?;
        if is_refused(&outcome) {
            self.progress().is_uncertain = false;
        }
        Ok(Tried { outcome, at, taken_at })
    }

    /// Goes on with a seat that an earlier run took, and returns the time for its token.
    ///
    /// # Errors
    /// As [`Seeker::attempt`].
    pub async fn resume(&self, aim: Aim) -> Result<Timestamp, Error> {
        let now = self.ambient.now();
        self.aim(aim, now).await
    }

    /// Notes that the run is about to take, or has taken, the seat of `aim`, and returns the time for its
    /// token.
    async fn aim(&self, aim: Aim, now: Timestamp) -> Result<Timestamp, Error> {
        if self.run.is_none() && self.holds_max.is_none() {
            return Ok(aim.taken_at);
        }
        let noted = self.take_note(aim, now).await?;
        // Reading the client's lobbies may have taken so long that another run has replaced this one.
        let now = self.ambient.now();
        let noted = if now.since(noted.at) < AIM_AGE_MAX { noted } else { self.note(noted.aim, now).await? };
        self.progress().is_uncertain = true;
        Ok(noted.aim.taken_at)
    }

    /// Checks that the client may have a game server requested for the lobby `lobby_id`, in which it is about
    /// to take the seat: one of whom nobody has connected yet has few such lobbies at a time (decision 76).
    /// The calls of [`Seeker::attempt`] that come before its write, which then does not make them again.
    ///
    /// # Errors
    /// [`Error::TooManyStartsFromSource`]; as [`Seeker::attempt`].
    pub async fn before_request(&self, lobby_id: &LobbyId, now: Timestamp) -> Result<(), Error> {
        let Some((_, holds_max)) = self.capped() else { return Ok(()) };
        self.take_note(Aim { lobby_id: lobby_id.clone(), taken_at: now }, now).await?;
        let progress = self.progress();
        // A retry whose earlier run noted the hold was checked then.
        let Some(ClientHolds { holds, standing, .. }) = &progress.client else { return Ok(()) };
        let (lobbies, limit) = (lobbies_of(holds).len(), standing.seats_max(holds_max));
        if standing.is_proven || lobbies <= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Ok(());
        }
        Err(Error::TooManyStartsFromSource { limit })
    }

    /// Notes `aim` and the client's hold unless they are noted, as the last note of this run says it.
    async fn take_note(&self, aim: Aim, now: Timestamp) -> Result<DatedAim, Error> {
        let (is_elsewhere, known) = {
            let progress = self.progress();
            let noted = progress.noted.as_ref();
            let is_elsewhere = noted.is_some_and(|earlier| earlier.aim.lobby_id != aim.lobby_id);
            (is_elsewhere && progress.is_uncertain, noted.filter(|_| !is_elsewhere).cloned())
        };
        if is_elsewhere {
            return Err(Error::Unavailable("a seat may have been taken in another lobby".to_owned()));
        }
        let noted = match known {
            Some(noted) if now.since(noted.at) < AIM_AGE_MAX => noted,
            _ => self.note(aim, now).await?,
        };
        self.hold_in(&noted.aim.lobby_id, now).await?;
        Ok(noted)
    }

    /// Records the lobby that this run is about to try and renews its lease, so that a retry waits or resumes
    /// there.
    async fn note(&self, aim: Aim, now: Timestamp) -> Result<DatedAim, Error> {
        if let Some(run) = &self.run
            && !self.store.aim_run(run, Some((&aim.lobby_id, aim.taken_at)), now).await?
        {
            return Err(self.overtaken());
        }
        let noted = DatedAim { aim, at: now };
        self.progress().noted = Some(noted.clone());
        Ok(noted)
    }

    /// Marks this run as replaced by another one, which may have its seat.
    fn overtaken(&self) -> Error {
        self.progress().is_overtaken = true;
        Error::Contention
    }

    /// Renews the run's lease while it waits for its lobby to start. With an `Idempotency-Key` one write unit
    /// every 5 s.
    ///
    /// # Errors
    /// [`Error::Contention`] when another run has replaced this one; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn stay(&self) -> Result<(), Error> {
        let (now, noted) = (self.ambient.now(), self.progress().noted.clone());
        if let (Some(_), Some(noted)) = (&self.run, noted)
            && now.since(noted.at) >= STAY_AGE_MAX
        {
            self.note(noted.aim, now).await?;
        }
        Ok(())
    }

    /// Gives back the `seats` that the request has in `lobby`, which it is refused with `refusal` all the
    /// same, unless a repetition goes on with them. One write unit; four of a transaction with an
    /// `Idempotency-Key`.
    ///
    /// # Errors
    /// [`Error::Contention`] when another run has replaced this one, and may have the seats, or others
    /// changed the lobby each time; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn give_back(&self, lobby: Lobby, seats: &Seats, refusal: &Error) -> Result<(), Error> {
        self.progress().is_uncertain = true;
        if let Some(run) = &self.run {
            let refused = (run, refusal.status_and_code().1);
            if !self.store.give_back_refused(refused, lobby, seats, &self.ambient).await? {
                return Err(self.overtaken());
            }
            let mut progress = self.progress();
            (progress.noted, progress.is_claimed) = (None, false);
        } else {
            self.store.give_back(lobby, seats, self.ambient.now()).await?;
        }
        self.progress().is_uncertain = false;
        Ok(())
    }

    /// Has a repetition of the request go on at once with the seat that this run took. Returns whether there
    /// can be one: not without an `Idempotency-Key`. One write unit with one.
    ///
    /// # Errors
    /// [`Error::Contention`] when another run has replaced this one; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn interrupt(&self) -> Result<bool, Error> {
        let Some(run) = &self.run else { return Ok(false) };
        if !self.store.release_run(run, self.ambient.now()).await? {
            return Err(self.overtaken());
        }
        self.progress().is_uncertain = true;
        Ok(true)
    }

    /// The output of `taking` the seat in the noted lobby, if it ends within the run's lease.
    async fn while_noted<T>(&self, taking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        // On the heap, because every future that contains it would reserve space for it.
        let taking = Box::pin(taking);
        let noted_at = self.progress().noted.as_ref().map(|noted| noted.at);
        let (Some(noted_at), Some(_)) = (noted_at, &self.run) else { return taking.await };
        let left = (noted_at + RUN_LEASE).before(LEASE_MARGIN).since(self.ambient.now());
        let too_late = || Err(Error::Unavailable("a seat was not taken while its note counted".to_owned()));
        within(&self.ambient, left, taking).await.unwrap_or_else(too_late)
    }

    async fn hold_in(&self, lobby_id: &LobbyId, now: Timestamp) -> Result<(), Error> {
        let Some((client, holds_max)) = self.capped() else { return Ok(()) };
        if self.progress().hold.is_some() {
            return Ok(());
        }
        let seats = &self.seats;
        let hold = Hold { seat_id: seats.first().clone(), lobby_id: lobby_id.clone(), since: now };
        let mut compared = None;
        for _ in 0..HOLD_ATTEMPTS {
            match self.store.hold_seats(client, (seats, &hold), holds_max, compared.as_ref()).await? {
                HoldOutcome::Noted(noted) => {
                    let mut progress = self.progress();
                    (progress.hold, progress.client) = (Some(hold), Some(noted));
                    return Ok(());
                }
                // By a crashed run. This run has it from now on, unless another request replaces it as stale.
                HoldOutcome::NotedBefore(earlier) => {
                    if self.store.point_holds(client, seats, &earlier, &hold).await? {
                        self.progress().hold = Some(hold);
                        return Ok(());
                    }
                    compared = None;
                }
                HoldOutcome::Refused(seen) => compared = Some(self.compare(client, &seen, holds_max).await?),
            }
        }
        Err(Error::Contention)
    }

    /// Compares the holds of a client with their lobbies, and returns how another is noted. Ends lobbies of
    /// dead servers. One consistent read unit for each lobby; where nothing speaks for the client, those of
    /// [`Pressure::is_on`] besides.
    async fn compare(&self, client: &Client, seen: &ClientHolds, holds_max: u32) -> Result<Compared, Error> {
        let ClientHolds { holds, standing, .. } = seen;
        let fates = self.fates(holds).await?;
        let is_proven = standing.is_proven || fates.iter().any(|fate| fate.proves());
        let (idle, unused): (Vec<_>, Vec<_>) = holds
            .iter()
            .zip(&fates)
            .filter(|(_, fate)| !fate.stands())
            .map(|(hold, fate)| (hold.clone(), *fate == Fate::Unused))
            .unzip();
        let (held, seats) = (holds.len() - idle.len(), self.seats.count());
        let plan = plan(holds.len(), seats, idle, holds_max).ok_or_else(|| self.refusal_at_cap())?;
        let struck = unused.iter().take(plan.replaced.len()).filter(|is_unused| **is_unused).count();
        let strikes = u32::try_from(struck).unwrap_or(u32::MAX);
        let standing = Standing { is_proven, strikes: standing.strikes.saturating_add(strikes) };
        let limit = standing.seats_max(holds_max);
        if !is_proven
            && (standing.strikes > 0 || is_at_cap(held, seats, limit))
            && self.pressure.is_on(&self.settings, &self.store, &self.ambient).await?
        {
            if is_at_cap(held, seats, limit) {
                return Err(Error::TooManyPlayersFromSource { limit: Some(limit) });
            }
            self.progress().is_on_trial = standing.is_on_trial();
        }
        for some in plan.withdrawn.chunks(WRITES_AT_ONCE) {
            try_join_all(some.iter().map(|hold| self.store.withdraw_hold(client, hold))).await?;
        }
        Ok(Compared { replaced: plan.replaced, strikes, is_proven })
    }

    /// What became of `holds`. One consistent read unit for each lobby. Ends lobbies of dead servers.
    async fn fates(&self, holds: &[Hold]) -> Result<Vec<Fate>, Error> {
        // The time before the read: a reservation that lapses later may have connected in between.
        let now = self.ambient.now();
        let mut lobbies = self.store.lobbies_as_they_are(&lobbies_of(holds)).await?;
        for lobby in &mut lobbies {
            // The lobby's server is dead but may come back: only the lobby's end is final.
            if lobby.end_cause(now) == Some(EndCause::ServerDead) {
                match self.store.end_lobby(lobby, EndCause::ServerDead, &self.ambient).await? {
                    EndOutcome::Ended | EndOutcome::AlreadyEnded => lobby.stage = Stage::Ended,
                    EndOutcome::Outdated => {}
                }
            }
        }
        Ok(holds.iter().map(|hold| fate(hold, &lobbies, now)).collect())
    }

    /// How little speaks for the client, see [`Standing::doubt`]; that of a fresh one without a cap, since
    /// nothing is known of its seats. One consistent read unit before its hold is noted.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn doubt(&self) -> Result<u32, Error> {
        let Some((client, _)) = self.capped() else { return Ok(Standing::default().doubt(0)) };
        let known = self.progress().client.clone();
        let seen = match known {
            Some(seen) => seen,
            None => {
                let seen = self.store.holds(client).await?;
                self.progress().client = Some(seen.clone());
                seen
            }
        };
        Ok(seen.doubt(&self.seats))
    }

    /// The doubt of the maker of a lobby, of which the hold is noted.
    #[must_use]
    pub fn noted_doubt(&self) -> u32 {
        let progress = self.progress();
        progress.client.as_ref().map_or_else(|| Standing::default().doubt(0), |seen| seen.doubt(&self.seats))
    }

    /// How long the seat waits for its player: as long as `usual`, or shortly where the client's last
    /// reservations lapsed and lobbies run short.
    #[must_use]
    pub fn reservation(&self, usual: Duration) -> Duration {
        if self.progress().is_on_trial { usual.min(SHORT_RESERVATION) } else { usual }
    }

    /// The refusal of a client that holds as many seats as it may.
    pub(super) const fn refusal_at_cap(&self) -> Error {
        Error::TooManyPlayersFromSource { limit: self.holds_max }
    }

    /// Ends the search with `found`, and points the hold to its lobby. One write unit if that is not the
    /// first that was tried.
    ///
    /// # Errors
    /// [`Error::TooManyPlayersFromSource`] when another request of the client has replaced the hold, because
    /// the lobby that it named had ended. [`Error::Unavailable`], [`Error::Bug`]: the hold would look stale,
    /// so the seat is not used.
    pub async fn settle(&self, found: &Found) -> Result<(), Error> {
        let hold = {
            let mut progress = self.progress();
            progress.is_uncertain = false;
            progress.hold.clone()
        };
        let (Some((client, _)), Some(hold)) = (self.capped(), hold) else { return Ok(()) };
        if hold.lobby_id == found.lobby.lobby_id {
            return Ok(());
        }
        let settled = Hold { lobby_id: found.lobby.lobby_id.clone(), ..hold.clone() };
        if self.store.point_holds(client, &self.seats, &hold, &settled).await? {
            self.progress().hold = Some(settled);
            return Ok(());
        }
        self.progress().hold = None;
        self.hold_in(&found.lobby.lobby_id, self.ambient.now()).await
    }

    /// Removes the notes of a refused request, if it certainly took no seat.
    pub(super) async fn give_up(&self, refusal: &Error) {
        let (is_noted, is_uncertain, is_claimed, hold) = {
            let progress = self.progress();
            (progress.noted.is_some(), progress.is_uncertain, progress.is_claimed, progress.hold.clone())
        };
        if is_noted && (is_uncertain || matches!(refusal, Error::Unavailable(_) | Error::Bug(_))) {
            return;
        }
        let now = self.ambient.now();
        let mut given_up = Vec::new();
        if let (Some((client, _)), Some(hold)) = (self.capped(), hold) {
            given_up.push(self.store.withdraw_holds(client, &self.seats, &hold).await);
        }
        if let Some(run) = self.run.as_ref().filter(|_| is_noted || is_claimed) {
            given_up.push(self.store.forget_run(run, refusal.status_and_code().1, now).await.map(|_| ()));
        }
        for error in given_up.into_iter().filter_map(Result::err) {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(cause, "notes of a refused request stay for half a minute");
        }
    }

    /// Whether the client is at its limit and the request has no hold.
    pub(super) async fn is_at_cap(&self) -> Result<bool, Error> {
        let Some((client, holds_max)) = self.capped() else { return Ok(false) };
        if self.progress().noted.is_some() {
            return Ok(false);
        }
        let (ClientHolds { holds, .. }, seats) = (self.store.holds(client).await?, self.seats.count());
        if self.is_held_before(&holds) || !is_at_cap(holds.len(), seats, holds_max) {
            return Ok(false);
        }
        let standing = self.fates(&holds).await?.into_iter().filter(|fate| fate.stands()).count();
        Ok(is_at_cap(standing, seats, holds_max))
    }

    /// Whether a crashed run noted a hold for the seat of this run.
    fn is_held_before(&self, holds: &[Hold]) -> bool {
        holds.iter().any(|hold| hold.seat_id == *self.seats.first())
    }

    /// The client and how many seats it may hold; `None` without a cap.
    pub(super) fn capped(&self) -> Option<(&Client, u32)> {
        self.holds_max.map(|holds_max| (&self.client, holds_max))
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

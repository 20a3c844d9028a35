//! What surrounds the matching of one request for a seat: that its repetition gives the same seat (`Idempotency-Key`), that
//! its client holds no more seats than it may, and the answer.
//!
//! [`Seating::begin`] comes before everything that a repetition need not pass again, [`Seating::finish`] after the match. In
//! between the matchmaker tells the [`Seeker`] of each lobby that it is about to take the seat in, and goes no further when
//! the seeker may not: so there is neither a seat without a hold nor one that a repetition would not find.
//!
//! A find without the header in a namespace without a cap makes no call of DynamoDB here.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::try_join_all;

use crate::{
    ambient::{Ambient, Timestamp, within},
    auth::{MatchmakerAuth, PlayerRight},
    client_address::{Client, ClientAddress},
    errors::Error,
    explaining::Trace,
    http::Request,
    ids::{LobbyId, SeatId, WriteId},
    lobby::{EndCause, SeatState, Stage},
    matchmaking::Found,
    settings_cache::Settings,
    store::{
        Store,
        ending::EndOutcome,
        holds::{Hold, HoldOutcome, REPLACED_MAX},
        replays::{KeptAnswer, RUN_LEASE, ReplayKey, ReplayRecord, Run, WAIT_MAX, hex_digest},
    },
    tokens::PlayerSeat,
    wire::{FindLobbyResponse, JoinLobby},
};

/// A cap above this is none (decisions on the per-client cap).
const CAP_MAX: u32 = 1_000;
/// A hold of this age whose seat is not in its lobby stands for nothing: its request has ended, one way or the other.
const PENDING_MAX: Duration = Duration::from_secs(30);
/// Holds withdrawn at the same time: they are parts of one item.
const WRITES_AT_ONCE: usize = 16;
/// Tries to note a hold while others free the same stale ones.
const HOLD_ATTEMPTS: usize = 8;
/// How long after its beginning a run that was overtaken may wait for another one's answer: the gateway gives up after 30 s.
const OVERTAKEN_DEADLINE: Duration = Duration::from_secs(28);
/// Pause before it looks the first time, doubled each time.
const WAIT_PAUSE: Duration = Duration::from_millis(100);
/// The longest such pause.
const WAIT_PAUSE_MAX: Duration = Duration::from_millis(1_600);
/// How old the note of a lobby may be when a try of it begins: far younger than the run's lease.
const AIM_AGE_MAX: Duration = Duration::from_secs(2);
/// How old it may be while its run waits for the lobby to start.
const STAY_AGE_MAX: Duration = Duration::from_secs(5);
/// How long before the end of the run's lease a try is given up: longer than a write that was sent may be on its way.
const LEASE_MARGIN: Duration = Duration::from_millis(1_500);

/// Lets requests for seats in and out.
#[derive(Debug)]
pub struct Seating {
    store: Store,
    auth: MatchmakerAuth,
    ambient: Ambient,
    edge_secret: Option<String>,
}

/// How a request begins.
#[derive(Debug)]
pub enum Entrance {
    /// It was answered before: with this.
    Replayed(Box<FindLobbyResponse>),
    /// It is to be matched.
    Open(Box<Seeker>),
}

/// One request on its way to one seat.
#[derive(Debug)]
pub struct Seeker {
    store: Store,
    ambient: Ambient,
    began_at: Timestamp,
    seat_id: SeatId,
    client: Client,
    /// The seats that the client may hold, where there is a cap.
    holds_max: Option<u32>,
    run: Option<Run>,
    interrupted: Option<Aim>,
    trace: Trace,
    progress: Mutex<Progress>,
}

/// A lobby that the seat was, or is about to be, taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// The time that the seat's token tells.
    pub taken_at: Timestamp,
}

/// An aim, and when its run noted it.
#[derive(Clone, Debug)]
struct Noted {
    aim: Aim,
    at: Timestamp,
}

#[derive(Debug, Default)]
struct Progress {
    is_claimed: bool,
    /// Whether others outside may be asked about it.
    is_cleared: bool,
    noted: Option<Noted>,
    /// Whether it is unknown if the seat was taken there.
    is_uncertain: bool,
    hold: Option<Hold>,
    /// Whether another run of the same request goes on in this one's place.
    is_overtaken: bool,
}

impl Seating {
    /// Seats in `store` for those whom `auth` lets in; `edge_secret` is what the edge proves itself with, if there is one.
    #[must_use]
    pub const fn new(
        store: Store,
        auth: MatchmakerAuth,
        ambient: Ambient,
        edge_secret: Option<String>,
    ) -> Self {
        Self { store, auth, ambient, edge_secret }
    }

    /// Begins `operation` for a player: its answer, when it was answered within the last ten minutes. While another
    /// request with its key is under way, waits for what comes of that one, its refusal included, unless two do already; one
    /// that crashed it goes on in the place of.
    ///
    /// One consistent read unit with an `Idempotency-Key`, more while it waits or goes on in another's place; nothing without.
    ///
    /// # Errors
    /// [`Error::BadHeader`], [`Error::IdempotencyMismatch`]; [`Error::RequestInProgress`] when the first request's answer
    /// did not come within 5 s; its refusal; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn begin(
        &self,
        request: &Request,
        right: &PlayerRight,
        settings: &Settings,
        operation: &str,
    ) -> Result<Entrance, Error> {
        let began_at = self.ambient.now();
        let (client_ip, namespace_id) =
            (request.client_ip(self.edge_secret.as_deref()), right.namespace_id());
        let address = ClientAddress::of(client_ip, namespace_id, self.auth.keys());
        let client = Client { namespace_id: namespace_id.clone(), address };
        let run = match request.idempotency_key()? {
            Some(key) => {
                let caller = [right.namespace_id().as_str(), right.credential(), client.address.as_str()];
                Some(Run {
                    key: ReplayKey::new(caller, key),
                    body: hex_digest(format!("{operation} {}", request.json()?.canonical()).as_bytes()),
                    seat: SeatId::random(&self.ambient),
                    id: WriteId::random(&self.ambient),
                    instead_of: None,
                })
            }
            None => None,
        };
        let mut seeker = Seeker {
            store: self.store.clone(),
            ambient: self.ambient.clone(),
            began_at,
            seat_id: run.as_ref().map_or_else(|| SeatId::random(&self.ambient), |run| run.seat.clone()),
            client: client.clone(),
            holds_max: Some(settings.namespace.max_players_per_client).filter(|max| *max <= CAP_MAX),
            run,
            interrupted: None,
            trace: request.trace().clone(),
            progress: Mutex::default(),
        };
        seeker.trace.open();
        let Some(run) = &mut seeker.run else { return Ok(Entrance::Open(Box::new(seeker))) };
        match self.answer_of_others(run, &client, Timestamp::NEVER).await? {
            Others::Answered(answer) => {
                seeker.trace.replayed();
                return Ok(Entrance::Replayed(answer));
            }
            Others::Crashed(record) => {
                // A seat that lapsed is nobody's any more, and its token would be refused: then the request gets another one.
                if let Some(lobby_id) = &record.lobby
                    && !self.is_seat_gone(lobby_id, &record.seat).await?
                {
                    run.seat = record.seat.clone();
                    seeker.seat_id = record.seat;
                    seeker.interrupted = Some(Aim { lobby_id: lobby_id.clone(), taken_at: record.taken_at });
                }
                run.instead_of = Some(record.run);
            }
            Others::None => {}
        }
        Ok(Entrance::Open(Box::new(seeker)))
    }

    /// Ends a request with what was `found`: the answer, kept for its repetitions; or the refusal, with nothing left behind.
    ///
    /// One write unit with an `Idempotency-Key`; another one for a cap when there is no seat.
    ///
    /// # Errors
    /// Those of `found`; [`Error::TooManyPlayersFromSource`] instead of a refusal of the match for a client at its cap;
    /// [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`]. After the latter two the seat may be taken all the same:
    /// a repetition finds it, else it lapses.
    pub async fn finish(
        &self,
        seeker: &Seeker,
        found: Result<Found, Error>,
        settings: &Settings,
    ) -> Result<FindLobbyResponse, Error> {
        let found = match found {
            Ok(found) => found,
            Err(refusal) => return self.refuse(seeker, refusal).await,
        };
        found.log();
        seeker.trace.found(found.way);
        let client = seeker.capped().map(|(client, _)| client.address.clone());
        let is_held = client.is_some();
        let answer = found.into_response(settings, client, self.auth.keys())?;
        if let Some(run) = &seeker.run {
            let json = serde_json::to_string(&answer.lobby.without_token())
                .map_err(|error| Error::Bug(format!("an answer did not serialize: {error}")))?;
            let kept = KeptAnswer { json: &json, key_id: self.auth.keys().key_id(), is_held };
            // An answer that is not known to be kept is not given: once the seat lapsed, a repetition would be answered otherwise.
            if !self.store.keep_answer(run, &kept, self.ambient.now()).await? {
                // It took so long that a repetition went on in its place, which may have found another seat.
                return self.answer_of_overtaker(seeker, run).await;
            }
        }
        Ok(answer)
    }

    async fn refuse(&self, seeker: &Seeker, refusal: Error) -> Result<FindLobbyResponse, Error> {
        if seeker.progress().is_overtaken
            && let Some(run) = &seeker.run
        {
            return self.answer_of_overtaker(seeker, run).await;
        }
        seeker.give_up(&refusal).await;
        let is_of_match =
            matches!(refusal, Error::NoAvailableLobbies | Error::TooManyLobbies | Error::NoServerAvailable);
        // The cap comes before the match, which may have refused before any seat was within reach.
        if is_of_match && seeker.is_at_cap().await? {
            return Err(Error::TooManyPlayersFromSource);
        }
        Err(refusal)
    }

    /// The answer of the run that went on in the place of `run`: repetitions are answered alike (I5).
    async fn answer_of_overtaker(&self, seeker: &Seeker, run: &Run) -> Result<FindLobbyResponse, Error> {
        match self.answer_of_others(run, &seeker.client, seeker.began_at + OVERTAKEN_DEADLINE).await? {
            Others::Answered(answer) => {
                seeker.trace.replayed();
                Ok(*answer)
            }
            Others::Crashed(_) | Others::None => Err(Error::Contention),
        }
    }

    /// Whether the seat that a crashed run noted was taken where it noted it, and is held no more. One consistent read unit.
    async fn is_seat_gone(&self, lobby_id: &LobbyId, seat_id: &SeatId) -> Result<bool, Error> {
        let lobby = self.store.lobby(lobby_id).await?;
        let now = self.ambient.now();
        Ok(lobby.is_some_and(|lobby| lobby.seat_state(seat_id, now) == SeatState::Gone))
    }

    /// What came of other runs of the same request, once that is known: waits for it in one of the two places for that, not
    /// beyond `deadline`.
    async fn answer_of_others(
        &self,
        run: &Run,
        client: &Client,
        deadline: Timestamp,
    ) -> Result<Others, Error> {
        let (mut pause, mut waited_for) = (WAIT_PAUSE, None);
        let until = deadline.min(self.ambient.now() + WAIT_MAX);
        loop {
            let now = self.ambient.now();
            let Some(record) = self.store.replay(&run.key).await? else { return Ok(Others::None) };
            if waited_for.as_ref() == Some(&record.run)
                && let Some(refusal) = record.refusal.as_deref().and_then(Error::told_again)
            {
                return Err(refusal);
            }
            if record.is_forgotten(now) {
                return Ok(Others::None);
            }
            if record.body != run.body {
                return Err(Error::IdempotencyMismatch);
            }
            if let Some(kept) = &record.answer {
                return self.answer_again(&record, kept, client).map(Others::Answered);
            }
            if record.lease_until <= now {
                return Ok(Others::Crashed(Box::new(record)));
            }
            let has_place = waited_for.is_some() || self.store.wait_for_run(&run.key, &record, now).await?;
            if !has_place || now >= until {
                return Err(Error::RequestInProgress);
            }
            waited_for = Some(record.run);
            self.ambient.sleep(pause.min(until.since(now))).await;
            pause = (pause * 2).min(WAIT_PAUSE_MAX);
        }
    }

    fn answer_again(
        &self,
        record: &ReplayRecord,
        kept: &str,
        client: &Client,
    ) -> Result<Box<FindLobbyResponse>, Error> {
        let lobby: JoinLobby = serde_json::from_str(kept)
            .map_err(|error| Error::Bug(format!("a kept answer did not parse: {error}")))?;
        let seat = PlayerSeat {
            namespace_id: client.namespace_id.clone(),
            lobby_id: lobby.lobby_id.clone(),
            seat_id: record.seat.clone(),
            client: record.is_held.then(|| client.address.clone()),
        };
        let key_id = record.key_id.as_deref().unwrap_or_default();
        let token = self.auth.keys().issue_player_again(&seat, record.taken_at, key_id);
        tracing::info!(lobby.id = %lobby.lobby_id, "an answer was given again");
        Ok(Box::new(FindLobbyResponse::new(lobby.lobby_id, lobby.region, lobby.ports, token)))
    }
}

/// What other runs of a request came to.
enum Others {
    None,
    Answered(Box<FindLobbyResponse>),
    Crashed(Box<ReplayRecord>),
}

impl Seeker {
    /// The seat that it is to get.
    #[must_use]
    pub const fn seat_id(&self) -> &SeatId {
        &self.seat_id
    }

    /// What is noted of its request.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
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

    /// Claims the request for this run, and sees that its client may hold another seat: before anybody outside is asked about
    /// it, once. One write unit with an `Idempotency-Key`, one consistent read unit under a cap.
    ///
    /// # Errors
    /// [`Error::TooManyPlayersFromSource`]; [`Error::Contention`] when another run of the request is under way;
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn before_asking(&self) -> Result<(), Error> {
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
            return Err(Error::TooManyPlayersFromSource);
        }
        self.progress().is_cleared = true;
        Ok(())
    }

    /// Notes that the seat is about to be taken in `lobby_id` at `now`; when its token should say that it was.
    ///
    /// Under a cap one write unit the first time; with an `Idempotency-Key` one for each lobby. Nothing otherwise.
    ///
    /// # Errors
    /// [`Error::TooManyPlayersFromSource`]; [`Error::Contention`] when another run of the request is under way, which ends this
    /// one; [`Error::Unavailable`], also when the seat may have been taken in another lobby before, and [`Error::Bug`].
    pub async fn aim(&self, lobby_id: &LobbyId, now: Timestamp) -> Result<Timestamp, Error> {
        self.aim_as(Aim { lobby_id: lobby_id.clone(), taken_at: now }, now).await
    }

    /// As [`Seeker::aim`], for a seat that is there already and whose token says so.
    ///
    /// # Errors
    /// As [`Seeker::aim`].
    pub async fn resume(&self, aim: Aim) -> Result<Timestamp, Error> {
        let now = self.ambient.now();
        self.aim_as(aim, now).await
    }

    async fn aim_as(&self, aim: Aim, now: Timestamp) -> Result<Timestamp, Error> {
        if self.run.is_none() && self.holds_max.is_none() {
            return Ok(aim.taken_at);
        }
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
        // The hold took as long as the client's lobbies took to read: others may have gone on in this run's place.
        let now = self.ambient.now();
        let noted = if now.since(noted.at) < AIM_AGE_MAX { noted } else { self.note(noted.aim, now).await? };
        self.progress().is_uncertain = true;
        Ok(noted.aim.taken_at)
    }

    /// Has repetitions of the request look where it is about to take its seat, and leave it alone for a while.
    async fn note(&self, aim: Aim, now: Timestamp) -> Result<Noted, Error> {
        if let Some(run) = &self.run
            && !self.store.aim_run(run, Some((&aim.lobby_id, aim.taken_at)), now).await?
        {
            return Err(self.overtaken());
        }
        let noted = Noted { aim, at: now };
        self.progress().noted = Some(noted.clone());
        Ok(noted)
    }

    /// Another run of the request goes on in this one's place, whose seat may be its own.
    fn overtaken(&self) -> Error {
        self.progress().is_overtaken = true;
        Error::Contention
    }

    /// Has repetitions leave the request alone for longer, while it waits for its lobby to start. With an `Idempotency-Key`
    /// one write unit every 5 s.
    ///
    /// # Errors
    /// [`Error::Contention`] when another run went on in this one's place; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn stay(&self) -> Result<(), Error> {
        let (now, noted) = (self.ambient.now(), self.progress().noted.clone());
        if let (Some(_), Some(noted)) = (&self.run, noted)
            && now.since(noted.at) >= STAY_AGE_MAX
        {
            self.note(noted.aim, now).await?;
        }
        Ok(())
    }

    /// Forgets the request, which is refused with `refusal` although it has a seat: from here on no repetition goes on with
    /// that one, so that it can be given back. One write unit with an `Idempotency-Key`.
    ///
    /// # Errors
    /// [`Error::Contention`] when another run went on in this one's place, and may have the seat; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn let_go(&self, refusal: &Error) -> Result<(), Error> {
        let Some(run) = &self.run else { return Ok(()) };
        if !self.store.forget_run(run, refusal.status_and_code().1, self.ambient.now()).await? {
            return Err(self.overtaken());
        }
        let mut progress = self.progress();
        (progress.noted, progress.is_claimed) = (None, false);
        Ok(())
    }

    /// What `taking` the seat where it is noted comes to, as long as its repetitions leave the request alone: a write begun
    /// later would take a second seat beside theirs (I5).
    ///
    /// # Errors
    /// Those of `taking`; [`Error::Unavailable`] when it took too long, and the seat may be taken all the same.
    pub async fn while_noted<T>(&self, taking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        // On the heap: every future that it is moved into would have room for it of its own.
        let taking = Box::pin(taking);
        let noted_at = self.progress().noted.as_ref().map(|noted| noted.at);
        let (Some(noted_at), Some(_)) = (noted_at, &self.run) else { return taking.await };
        let left = (noted_at + RUN_LEASE).before(LEASE_MARGIN).since(self.ambient.now());
        let too_late = || Err(Error::Unavailable("a seat was not taken while its note counted".to_owned()));
        within(&self.ambient, left, taking).await.unwrap_or_else(too_late)
    }

    /// Notes that the seat was not taken in the lobby told last, for certain.
    pub fn missed(&self) {
        self.progress().is_uncertain = false;
    }

    async fn hold_in(&self, lobby_id: &LobbyId, now: Timestamp) -> Result<(), Error> {
        let Some((client, holds_max)) = self.capped() else { return Ok(()) };
        if self.progress().hold.is_some() {
            return Ok(());
        }
        let hold = Hold { seat_id: self.seat_id.clone(), lobby_id: lobby_id.clone(), since: now };
        let mut replaced = Vec::new();
        for _ in 0..HOLD_ATTEMPTS {
            match self.store.hold_seat(client, &hold, holds_max, &replaced).await? {
                HoldOutcome::Noted => {
                    self.progress().hold = Some(hold);
                    return Ok(());
                }
                // By a run that crashed: this one's from now on, unless it is freed as one that stands for nothing.
                HoldOutcome::NotedBefore(earlier) => {
                    if self.store.point_hold(client, &earlier, &hold).await? {
                        self.progress().hold = Some(hold);
                        return Ok(());
                    }
                    replaced.clear();
                }
                HoldOutcome::AtCap(holds) => {
                    replaced = self.idle_holds(&holds).await?;
                    let standing = u32::try_from(holds.len() - replaced.len()).unwrap_or(u32::MAX);
                    if standing >= holds_max {
                        return Err(Error::TooManyPlayersFromSource);
                    }
                    let surplus = replaced.split_off(replaced.len().min(REPLACED_MAX));
                    // Those that one write does not replace must go when the cap was higher: no more than that takes, and not
                    // all in one try, for each costs what the client's whole item does.
                    let rest = u32::try_from(holds.len() - replaced.len() + 1).unwrap_or(u32::MAX);
                    let excess = usize::try_from(rest.saturating_sub(holds_max)).unwrap_or(usize::MAX);
                    let excess = surplus.iter().take(excess.min(REPLACED_MAX)).collect::<Vec<_>>();
                    for some in excess.chunks(WRITES_AT_ONCE) {
                        try_join_all(some.iter().map(|hold| self.store.withdraw_hold(client, hold))).await?;
                    }
                }
            }
        }
        Err(Error::Contention)
    }

    /// Those of `holds` that stand for no seat any more. One consistent read unit for each lobby; lobbies of dead servers end.
    async fn idle_holds(&self, holds: &[Hold]) -> Result<Vec<Hold>, Error> {
        let ids: BTreeSet<LobbyId> = holds.iter().map(|hold| hold.lobby_id.clone()).collect();
        let ids: Vec<LobbyId> = ids.into_iter().collect();
        // Of before the read: a reservation that lapses after it may have been connected in between.
        let now = self.ambient.now();
        let mut lobbies = self.store.lobbies_as_they_are(&ids).await?;
        for lobby in &mut lobbies {
            // Nobody plays there, but its server may come back: only its end is final.
            if lobby.end_cause(now) == Some(EndCause::ServerDead) {
                match self.store.end_lobby(lobby, EndCause::ServerDead, &self.ambient).await? {
                    EndOutcome::Ended | EndOutcome::AlreadyEnded => lobby.stage = Stage::Ended,
                    EndOutcome::Outdated => {}
                }
            }
        }
        let stands = |hold: &Hold| {
            let lobby = lobbies.iter().find(|lobby| lobby.lobby_id == hold.lobby_id);
            match lobby.map_or(SeatState::Unknown, |lobby| lobby.seat_state(&hold.seat_id, now)) {
                SeatState::Held => true,
                SeatState::Gone => false,
                // Its request may be about to take it, there or elsewhere.
                SeatState::Unknown => now.since(hold.since) < PENDING_MAX,
            }
        };
        Ok(holds.iter().filter(|hold| !stands(hold)).cloned().collect())
    }

    /// Has the hold name the lobby that the seat is in. One write unit when it is not the first that was tried.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]: the seat would be taken for one that was never taken, then rather none.
    pub async fn settle(&self, found: &Found) -> Result<(), Error> {
        let hold = self.progress().hold.clone();
        let (Some((client, _)), Some(hold)) = (self.capped(), hold) else { return Ok(()) };
        if hold.lobby_id == found.lobby.lobby_id {
            return Ok(());
        }
        let settled = Hold { lobby_id: found.lobby.lobby_id.clone(), ..hold.clone() };
        self.store.point_hold(client, &hold, &settled).await?;
        self.progress().hold = Some(settled);
        Ok(())
    }

    /// Leaves nothing behind of a request that was refused, as far as it is certain that it took no seat.
    async fn give_up(&self, refusal: &Error) {
        let (is_noted, is_claimed, hold) = {
            let progress = self.progress();
            (progress.noted.is_some(), progress.is_claimed, progress.hold.clone())
        };
        if is_noted && matches!(refusal, Error::Unavailable(_) | Error::Bug(_)) {
            return;
        }
        let now = self.ambient.now();
        let mut given_up = Vec::new();
        if let (Some((client, _)), Some(hold)) = (self.capped(), hold) {
            given_up.push(self.store.withdraw_hold(client, &hold).await);
        }
        if let Some(run) = self.run.as_ref().filter(|_| is_noted || is_claimed) {
            given_up.push(self.store.forget_run(run, refusal.status_and_code().1, now).await.map(|_| ()));
        }
        for error in given_up.into_iter().filter_map(Result::err) {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(cause, "what was noted of a refused request stays for half a minute");
        }
    }

    /// Whether its client holds as many seats as it may, when it has noted none of its own.
    async fn is_at_cap(&self) -> Result<bool, Error> {
        let Some((client, holds_max)) = self.capped() else { return Ok(false) };
        if self.progress().noted.is_some() {
            return Ok(false);
        }
        let is_at_cap = |holds: usize| u32::try_from(holds).is_ok_and(|holds| holds >= holds_max);
        let holds = self.store.holds(client).await?;
        // A run that crashed noted one for the seat that this one goes on with.
        if holds.iter().any(|hold| hold.seat_id == self.seat_id) {
            return Ok(false);
        }
        Ok(is_at_cap(holds.len()) && is_at_cap(holds.len() - self.idle_holds(&holds).await?.len()))
    }

    /// The client and how many seats it may hold, where there is a cap.
    fn capped(&self) -> Option<(&Client, u32)> {
        self.holds_max.map(|holds_max| (&self.client, holds_max))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

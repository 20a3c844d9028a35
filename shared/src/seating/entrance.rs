//! The beginning and the end of a request for a seat: [`Seating`], which recognises retries.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    auth::{
        matchmaker::{MatchmakerAuth, PublicRight},
        settings::Settings,
    },
    base::{
        ambient::{Ambient, Timestamp},
        cache::TimedMap,
        pauses::Pauses,
    },
    models::{
        client::{Client, ClientId},
        errors::Error,
        ids::{LobbyId, SeatId, WriteId},
        lobby::SeatState,
        seats::{Party, Seats},
    },
    request::Request,
    seating::{
        pressure::Pressure,
        reply::{Found, players},
        seeker::{Aim, Seeker},
    },
    store::{
        client::Store,
        replays::{KeptAnswer, ReplayKey, ReplayRecord, Run, WAIT_MAX, hex_digest},
    },
    wire::{FindLobbyResponse, JoinLobby},
};

/// How long after its beginning an overtaken run may wait for another run's response: the gateway times out
/// after 30 s.
const OVERTAKEN_DEADLINE: Duration = Duration::from_secs(28);
/// How long an instance remembers that a client was at its cap, and of how many clients.
const AT_CAP_FOR: Duration = Duration::from_secs(1);
const CLIENTS_MAX: usize = 1_024;
/// Pauses before its looks.
const WAIT_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(100)).up_to(Duration::from_millis(1_600));

/// Begins and ends requests for seats.
#[derive(Debug)]
pub struct Seating {
    store: Store,
    auth: MatchmakerAuth,
    ambient: Ambient,
    edge_secret: Option<String>,
    is_edge_only: bool,
    /// Clients that were refused because they hold so many seats.
    at_cap: TimedMap<Client, u32>,
    pressure: Arc<Pressure>,
}

/// How a request begins.
#[derive(Debug)]
pub enum Entrance {
    /// It already has this response.
    Replayed(Box<FindLobbyResponse>),
    /// It continues with the match.
    Open(Box<Seeker>),
}

impl Seating {
    /// Seating in `store` for callers that `auth` admits; `edge_secret` authenticates the edge, if there is
    /// one, and with `is_edge_only` every request must come through it.
    #[must_use]
    pub fn new(
        store: Store,
        auth: MatchmakerAuth,
        ambient: Ambient,
        edge_secret: Option<String>,
        is_edge_only: bool,
    ) -> Self {
        let at_cap = TimedMap::new(CLIENTS_MAX);
        Self { store, auth, ambient, edge_secret, is_edge_only, at_cap, pressure: Arc::new(Pressure::new()) }
    }

    /// Begins `operation` for a player, or returns the response that it had within the last ten minutes.
    /// While another request with its key is under way, waits for the response or refusal of that one, unless
    /// two others wait already. Replaces a run that crashed. The player tokens have the data of the `party`.
    /// A retry's tokens have the retry's own, because no data of players is stored.
    ///
    /// One consistent read unit with an `Idempotency-Key`, more while it waits or if it replaces a run; none
    /// without.
    ///
    /// # Errors
    /// [`Error::NotThroughEdge`]; [`Error::BadHeader`], [`Error::IdempotencyMismatch`];
    /// [`Error::RequestInProgress`] when the first
    /// request has no response within 5 s; its refusal; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn begin(
        &self,
        request: &Request,
        right: &PublicRight,
        settings: &Arc<Settings>,
        operation: &str,
        party: Party,
    ) -> Result<Entrance, Error> {
        let began_at = self.ambient.now();
        let edge_secret = self.edge_secret.as_deref();
        if self.is_edge_only && !edge_secret.is_some_and(|secret| request.came_through_edge(secret)) {
            return Err(Error::NotThroughEdge);
        }
        let (client_ip, namespace_id) = (request.client_ip(edge_secret), right.namespace_id());
        let client_id = ClientId::of(client_ip, namespace_id, self.auth.keys().address_key());
        let client = Client { namespace_id: namespace_id.clone(), client_id };
        let run = self.run_of(request, right, &client, operation)?;
        let seats_from = |first| Seats::of_party(first, party.size, &settings.namespace.tag_key);
        let first = run.as_ref().map_or_else(|| SeatId::random(&self.ambient), |run| run.seat.clone());
        let mut seeker = Seeker {
            store: self.store.clone(),
            ambient: self.ambient.clone(),
            began_at,
            seats: seats_from(first),
            client: client.clone(),
            client_ip,
            holds_max: settings.namespace.seats_per_client(),
            was_refused_at: self.at_cap.get(&client, AT_CAP_FOR, began_at),
            settings: Arc::clone(settings),
            pressure: Arc::clone(&self.pressure),
            run,
            interrupted: None,
            trace: request.trace().clone(),
            party: party.clone(),
            excluded: Vec::new(),
            progress: Mutex::default(),
        };
        seeker.trace.open();
        let Some(mut run) = seeker.run.take() else { return Ok(Entrance::Open(Box::new(seeker))) };
        match self.answer_of_others(&run, &seeker, Timestamp::NEVER).await? {
            Others::Answered(answer) => {
                seeker.trace.replayed();
                return Ok(Entrance::Replayed(answer));
            }
            Others::Crashed(record) => {
                // A lapsed seat's token would be refused, so the request gets another seat.
                if let Some(lobby_id) = &record.lobby
                    && !self.is_seat_gone(lobby_id, &record.seat).await?
                {
                    run.seat = record.seat.clone();
                    seeker.seats = seats_from(record.seat);
                    seeker.interrupted = Some(Aim { lobby_id: lobby_id.clone(), taken_at: record.taken_at });
                }
                run.instead_of = Some(record.run);
            }
            Others::None => {}
        }
        seeker.run = Some(run);
        Ok(Entrance::Open(Box::new(seeker)))
    }

    /// The run of a request with an `Idempotency-Key`.
    fn run_of(
        &self,
        request: &Request,
        right: &PublicRight,
        client: &Client,
        operation: &str,
    ) -> Result<Option<Run>, Error> {
        let Some(key) = request.idempotency_key()? else { return Ok(None) };
        let caller = [right.namespace_id().as_str(), right.credential(), client.client_id.as_str()];
        Ok(Some(Run {
            key: ReplayKey::new(caller, key),
            body: hex_digest(format!("{operation} {}", request.json()?.canonical()).as_bytes()),
            seat: SeatId::random(&self.ambient),
            id: WriteId::random(&self.ambient),
            instead_of: None,
        }))
    }

    /// Ends a request: returns the response for what was `found` and keeps it for retries, or returns the
    /// refusal and cleans up.
    ///
    /// One write unit with an `Idempotency-Key`; another one under a cap when there is no seat.
    ///
    /// # Errors
    /// The errors of `found`; [`Error::TooManyPlayersFromSource`] instead of a refusal of the match for a
    /// client at its cap; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`]. After the latter
    /// two, the seat may be taken all the same. A retry finds it, or it lapses.
    pub async fn finish(
        &self,
        seeker: &Seeker,
        found: Result<Found, Error>,
        settings: &Settings,
    ) -> Result<FindLobbyResponse, Error> {
        let found = match found {
            Ok(found) => found,
            Err(refusal) => {
                let refused = self.refuse(seeker, refusal).await;
                if let Err(Error::TooManyPlayersFromSource { limit: Some(limit) }) = refused {
                    self.at_cap.put(seeker.client.clone(), limit, self.ambient.now());
                }
                return refused;
            }
        };
        found.log();
        seeker.trace.found(found.outcome);
        let client = seeker.capped().map(|(client, _)| client.client_id.clone());
        let is_held = client.is_some();
        let answer = found.into_response(settings, client, &seeker.party, self.auth.keys())?;
        if let Some(run) = &seeker.run {
            let json = serde_json::to_string(&answer.lobby.without_token())
                .map_err(|error| Error::Bug(format!("a response did not serialize: {error}")))?;
            let kept = KeptAnswer { json: &json, key_id: self.auth.keys().key_id(), is_held };
            // A response that may not be kept is not sent: once the seat has lapsed, a retry would get
            // another one.
            if !self.store.keep_answer(run, &kept, self.ambient.now()).await? {
                // The run took so long that a retry replaced it, which may have found another seat.
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
        let is_of_match = matches!(
            refusal,
            Error::NoAvailableLobbies | Error::TooManyLobbies | Error::NoServerAvailable(_)
        );
        // The cap takes precedence over the match, which may have refused before it tried any seat.
        if is_of_match && seeker.is_at_cap().await? {
            return Err(seeker.refusal_at_cap());
        }
        Err(refusal)
    }

    /// The response of the run that replaced `run`: all retries get the same one (I5).
    async fn answer_of_overtaker(&self, seeker: &Seeker, run: &Run) -> Result<FindLobbyResponse, Error> {
        match self.answer_of_others(run, seeker, seeker.began_at + OVERTAKEN_DEADLINE).await? {
            Others::Answered(answer) => {
                seeker.trace.replayed();
                Ok(*answer)
            }
            Others::Crashed(_) | Others::None => Err(Error::Contention),
        }
    }

    /// Whether the crashed run took its seat where it noted it, and it is no longer held. One consistent read
    /// unit.
    async fn is_seat_gone(&self, lobby_id: &LobbyId, seat_id: &SeatId) -> Result<bool, Error> {
        let lobby = self.store.lobby(lobby_id).await?;
        let now = self.ambient.now();
        Ok(lobby.is_some_and(|lobby| lobby.seat_state(seat_id, now) == SeatState::Gone))
    }

    /// The result of other runs of the same request. Waits for it in one of the two waiting places, at most
    /// until `deadline`.
    async fn answer_of_others(
        &self,
        run: &Run,
        seeker: &Seeker,
        deadline: Timestamp,
    ) -> Result<Others, Error> {
        let (mut looks, mut waited_for) = (0, None);
        let until = deadline.min(self.ambient.now() + WAIT_MAX);
        loop {
            let now = self.ambient.now();
            let Some(record) = self.store.replay(&run.key).await? else { return Ok(Others::None) };
            if waited_for.as_ref() == Some(&record.run)
                && let Some(refusal) = record.refusal.as_deref().and_then(Error::of_kept_code)
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
                return self.answer_again(&record, kept, seeker).map(Others::Answered);
            }
            if record.lease_until <= now {
                return Ok(Others::Crashed(Box::new(record)));
            }
            let has_place = waited_for.is_some() || self.store.wait_for_run(&run.key, &record, now).await?;
            if !has_place || now >= until {
                return Err(Error::RequestInProgress);
            }
            waited_for = Some(record.run);
            self.ambient.sleep(WAIT_PAUSES.nth(looks).min(until.since(now))).await;
            looks += 1;
        }
    }

    fn answer_again(
        &self,
        record: &ReplayRecord,
        kept: &str,
        Seeker { client, party, settings, .. }: &Seeker,
    ) -> Result<Box<FindLobbyResponse>, Error> {
        let lobby: JoinLobby = serde_json::from_str(kept)
            .map_err(|error| Error::Bug(format!("a kept response did not parse: {error}")))?;
        let seats = Seats::of_party(record.seat.clone(), party.size, &settings.namespace.tag_key);
        let place = (client.namespace_id.clone(), lobby.lobby_id.clone());
        let client = record.is_held.then(|| client.client_id.clone());
        let key_id = record.key_id.as_deref().unwrap_or_default();
        let tokens = players(&seats, place, client, party)
            .map(|seat| self.auth.keys().issue_player_again(&seat, record.taken_at, key_id));
        let tokens = tokens.collect();
        tracing::info!(lobby.id = %lobby.lobby_id, "a response was sent again");
        Ok(Box::new(FindLobbyResponse::new(lobby.lobby_id, lobby.code, lobby.region, lobby.ports, tokens)))
    }
}

/// The result of other runs of a request.
enum Others {
    None,
    Answered(Box<FindLobbyResponse>),
    Crashed(Box<ReplayRecord>),
}

//! Requests for a seat with an `Idempotency-Key`, whose retries get the same seat (I5).
//!
//! One item for each key and caller. It has the seat of the request and the lobby that the run is about to
//! try, which the run notes before each try under a lease. The run renews the lease while it waits for its
//! lobby to start. It claims the request before it calls a captcha provider or a backend. In the end the item
//! keeps the response without its token (decisions 46 and 47).
//!
//! If the request has a response, a retry signs the same token again with the same key. If the request is
//! under way, the retry waits in one of two places, which expire by themselves, and also gets its refusal. If
//! the lease has expired, the first run crashed: the retry continues with the same seat in the noted lobby,
//! or with another seat if that one has lapsed. A late copy of a note does not replace a later note of its
//! run.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::{
    base::ambient::{Ambient, Timestamp},
    models::{
        errors::Error,
        ids::{LobbyId, SeatId, WriteId},
        lobby::Lobby,
        seats::Seats,
    },
    store::{
        client::Store,
        conflicts::refused,
        ending::CONFLICT_PAUSES,
        items::{from_item, number, text},
        keys::pk_item,
        writes::Write,
    },
};

/// How long a response is kept (decision 46).
pub const REPLAY_LIFE: Duration = Duration::from_secs(600);
/// The lease of a run, from its claim and from each lobby that it notes: longer than one call of DynamoDB
/// with its retries, and than a captcha provider and the studio's backends together. The run takes no seat
/// after it.
pub const RUN_LEASE: Duration = Duration::from_secs(15);
/// How long a retry keeps its waiting place.
pub const WAIT_MAX: Duration = Duration::from_secs(5);

/// Tries of a transaction of a record and a lobby.
const TRANSACTIONS_MAX: u32 = 8;

/// The request is new or expired, or its run is this one and has noted nothing later: a late copy of an
/// earlier note must not hide where the seat was taken since.
const IS_OWN: &str = "attribute_not_exists(#run) OR #expires_at <= :now_secs \
                      OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer))";
/// The same, or its run is the crashed one that was seen.
const IS_LEFT_ALONE: &str = "attribute_not_exists(#run) OR #expires_at <= :now_secs \
                             OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer)) \
                             OR (#run = :seen AND #lease_until <= :now AND attribute_not_exists(#answer))";

/// One key of one caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplayKey(String);

impl ReplayKey {
    /// The key `text` of the caller with this namespace, credential and address.
    #[must_use]
    pub fn new(caller: [&str; 3], text: &str) -> Self {
        Self(format!("replay/{}", hex_digest(serde_json::json!([caller, text]).to_string().as_bytes())))
    }
}

/// A digest as text, for values that are only compared.
#[must_use]
pub fn hex_digest(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A request as noted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReplayRecord {
    /// Digest of operation and body.
    pub body: String,
    /// Its seat.
    pub seat: SeatId,
    /// The last run that noted it.
    pub run: WriteId,
    /// When that run's lease expires.
    pub lease_until: Timestamp,
    /// The last lobby that it tried, if any.
    pub lobby: Option<LobbyId>,
    /// The time in the seat's token, if it was taken there.
    #[serde(default)]
    pub taken_at: Timestamp,
    /// The response, once there is one: its JSON without the token.
    pub answer: Option<String>,
    /// The signing key of the response's token.
    pub key_id: Option<String>,
    /// Whether the seat is one of those that its client holds under a cap.
    #[serde(default)]
    pub is_held: bool,
    /// The code of the run's refusal, once it was refused.
    pub refusal: Option<String>,
    /// Until when each waiting place is taken.
    #[serde(default)]
    first_waits_until: Timestamp,
    #[serde(default)]
    second_waits_until: Timestamp,
    /// When the record expires, in seconds.
    expires_at: u64,
}

impl ReplayRecord {
    /// Whether the record has expired at `now`: DynamoDB may delete it days later.
    #[must_use]
    pub const fn is_forgotten(&self, now: Timestamp) -> bool {
        self.expires_at <= now.secs()
    }
}

/// A run of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The request's key.
    pub key: ReplayKey,
    /// Digest of operation and body.
    pub body: String,
    /// The seat of the request.
    pub seat: SeatId,
    /// This run.
    pub id: WriteId,
    /// The crashed run that it replaces.
    pub instead_of: Option<WriteId>,
}

/// The parts of a successful response that are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptAnswer<'a> {
    /// Its JSON without the token.
    pub json: &'a str,
    /// The key that the token was signed with.
    pub key_id: &'a str,
    /// Whether the seat is one of those that its client holds under a cap.
    pub is_held: bool,
}

impl Store {
    /// The record of a request, expired or not. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn replay(&self, key: &ReplayKey) -> Result<Option<ReplayRecord>, Error> {
        self.read(&self.tables.clients, pk_item(&key.0), true).await
    }

    /// Notes that `run` is about to take its seat in `lobby_id`, with `taken_at` in its token. Returns
    /// whether it may: not if another run has the request. Without a lobby, it claims the request. One write
    /// unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; it may be noted all the same.
    pub async fn aim_run(
        &self,
        run: &Run,
        aim: Option<(&LobbyId, Timestamp)>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let change =
            "SET #body = :body, #seat = :seat, #run = :run, #lease_until = :lease, #expires_at = :expiry";
        let old = "REMOVE #answer, #key_id, #is_held, #refusal";
        let change = match aim {
            Some(_) => format!("{change}, #lobby = :lobby, #taken_at = :taken_at {old}"),
            None => format!("{change} {old}, #lobby, #taken_at"),
        };
        let condition = if run.instead_of.is_some() { IS_LEFT_ALONE } else { IS_OWN };
        let seen = run.instead_of.as_ref();
        let write = self
            .on_client(&run.key.0)
            .change(change)
            .when(condition)
            .with(":body", text(&run.body))
            .with(":seat", text(run.seat.as_str()))
            .with(":run", text(run.id.as_str()))
            .with(":now_secs", number(now.secs()))
            .with(":lease", number(now + RUN_LEASE))
            .with(":expiry", number((now + REPLAY_LIFE).secs()))
            .with(":lobby", aim.map(|(lobby_id, _)| text(lobby_id.as_str())))
            .with(":taken_at", aim.map(|(_, taken_at)| number(taken_at)))
            .with(":seen", seen.map(|seen| text(seen.as_str())))
            .with(":now", seen.map(|_| number(now)));
        Ok(self.update::<ReplayRecord>(write).await?.is_ok())
    }

    /// Takes a place to wait for the run that `seen` shows, and returns whether there was one. One write
    /// unit, another one if the free place is taken meanwhile, none if both are.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn wait_for_run(
        &self,
        key: &ReplayKey,
        seen: &ReplayRecord,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let places = [
            ("#first_waits_until", seen.first_waits_until),
            ("#second_waits_until", seen.second_waits_until),
        ];
        for (place, _) in places.into_iter().filter(|(_, until)| *until <= now) {
            let change = format!("SET {place} = :waits_until");
            let condition = format!("#run = :seen AND (attribute_not_exists({place}) OR {place} <= :now)");
            let write = self
                .on_client(&key.0)
                .change(change)
                .when(condition)
                .with(":waits_until", number(now + WAIT_MAX))
                .with(":seen", text(seen.run.as_str()))
                .with(":now", number(now));
            if self.update::<ReplayRecord>(write).await?.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps the response of `run`, without its token. Returns whether it did: not if another run has
    /// replaced it. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_answer(
        &self,
        run: &Run,
        answer: &KeptAnswer<'_>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let write = self
            .on_client(&run.key.0)
            .change("SET #answer = :answer, #key_id = :key_id, #is_held = :held, #expires_at = :expiry")
            .when("#run = :run")
            .with(":answer", text(answer.json))
            .with(":key_id", text(answer.key_id))
            .with(":held", AttributeValue::Bool(answer.is_held))
            .with(":run", text(run.id.as_str()))
            .with(":expiry", number((now + REPLAY_LIFE).secs()));
        self.update::<ReplayRecord>(write).await.map(|kept| kept.is_ok())
    }

    /// Ends the lease of a `run` that leaves its seat to a repetition. Returns whether it did: not if another
    /// run has replaced it. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn release_run(&self, run: &Run, now: Timestamp) -> Result<bool, Error> {
        let write = self
            .on_client(&run.key.0)
            .change("SET #lease_until = :now")
            .when("#run = :run AND attribute_not_exists(#answer)")
            .with(":now", number(now))
            .with(":run", text(run.id.as_str()));
        self.update::<ReplayRecord>(write).await.map(|released| released.is_ok())
    }

    /// Lets the record of a request whose `run` took no seat expire, and leaves the code of its `refusal` for
    /// waiting retries. Returns whether it did: not if another run has replaced it. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn forget_run(&self, run: &Run, refusal: &str, now: Timestamp) -> Result<bool, Error> {
        let write = self.forgetting(run, refusal, now);
        self.update::<ReplayRecord>(write).await.map(|forgotten| forgotten.is_ok())
    }

    /// Frees those of `seats` that `lobby` has reserved, as [`Store::give_back`] does, for a `run` that took
    /// them and has this code of a refusal: its record ends with them, so that no repetition takes seats
    /// besides them, and none goes on with them (I5). Returns whether it did: not if another run has replaced
    /// it. One transaction, twice the units of both writes.
    ///
    /// # Errors
    /// As [`Store::give_back`].
    pub async fn give_back_refused(
        &self,
        (run, refusal): (&Run, &str),
        mut lobby: Lobby,
        seats: &Seats,
        ambient: &Ambient,
    ) -> Result<bool, Error> {
        for tries in 0..TRANSACTIONS_MAX {
            let now = ambient.now();
            let Some(write) = self.giving_back(&lobby, seats, now) else {
                return self.forget_run(run, refusal, now).await;
            };
            let Err(reasons) = self.transact(vec![self.forgetting(run, refusal, now), write]).await? else {
                return Ok(true);
            };
            if refused(&reasons, 0).is_some() {
                return Ok(false);
            }
            match refused(&reasons, 1).and_then(|reason| reason.item.clone()) {
                Some(later) => lobby = from_item(later)?,
                None => CONFLICT_PAUSES.wait(tries, ambient).await,
            }
        }
        Err(Error::Contention)
    }

    /// The write of [`Store::forget_run`].
    fn forgetting(&self, run: &Run, refusal: &str, now: Timestamp) -> Write {
        self.on_client(&run.key.0)
            .change("SET #expires_at = :now, #refusal = :refusal")
            .when("#run = :run AND attribute_not_exists(#answer)")
            .with(":now", number(now.secs()))
            .with(":refusal", text(refusal))
            .with(":run", text(run.id.as_str()))
    }
}

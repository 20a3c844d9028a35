//! Requests for a seat that bear a key of their own (`Idempotency-Key`), so that their repetition gives the same seat (I5).
//!
//! One item per key and caller. Before a run of the request tries a lobby it notes the lobby here, under the seat that it
//! would take and with a lease: whoever repeats the request after a crash goes on from there, with the same seat, and looks
//! into that lobby first. What is kept of a success is its answer without the token, which is signed again.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{Item, Store, number, text};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{LobbyId, SeatId, WriteId},
};

/// How long an answer is kept (decisions on lobbies.find).
pub const REPLAY_LIFE: Duration = Duration::from_secs(600);
/// How long a run keeps others from going on in its place, after each lobby that it notes: longer than one call of DynamoDB
/// with its repetitions can take. It takes no seat later than that.
pub const RUN_LEASE: Duration = Duration::from_secs(10);

/// That a request is new, or to be forgotten, or that its run is this one, which has noted nothing later: a repetition of an
/// earlier note that comes late must not hide where the seat was taken since.
const IS_OWN: &str = "attribute_not_exists(#run) OR #expires_at <= :now_secs \
                      OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer))";
/// The same, or that its run is the one that was seen and crashed.
const IS_LEFT_ALONE: &str = "attribute_not_exists(#run) OR #expires_at <= :now_secs \
                             OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer)) \
                             OR (#run = :seen AND #lease_until <= :now AND attribute_not_exists(#answer))";

/// One key of one caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplayKey(String);

impl ReplayKey {
    /// The key `text` of the caller that `caller` tells apart: namespace, credential and address.
    #[must_use]
    pub fn new(caller: [&str; 3], text: &str) -> Self {
        Self(format!("replay/{}", hex_digest(serde_json::json!([caller, text]).to_string().as_bytes())))
    }
}

/// A digest as text, for what is only compared.
#[must_use]
pub fn hex_digest(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A request as noted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReplayRecord {
    /// Digest of operation and body.
    pub body: String,
    /// The seat that it gets.
    pub seat: SeatId,
    /// The run that noted it last.
    pub run: WriteId,
    /// Until when that run is left alone.
    pub lease_until: Timestamp,
    /// The lobby that it tried last.
    pub lobby: LobbyId,
    /// The time that the seat's token tells, in case it was taken there.
    pub taken_at: Timestamp,
    /// The answer, once there is one: its JSON without the token.
    #[serde(default)]
    pub answer: Option<String>,
    /// The signing key of the answer's token.
    #[serde(default)]
    pub key_id: Option<String>,
    /// Whether the seat is one of those that its client holds under a cap.
    #[serde(default)]
    pub is_held: bool,
    /// When it is forgotten, in seconds.
    expires_at: u64,
}

/// A run of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The request's key.
    pub key: ReplayKey,
    /// Digest of operation and body.
    pub body: String,
    /// The seat that it is to get.
    pub seat: SeatId,
    /// This run.
    pub id: WriteId,
    /// The run that it goes on in the place of.
    pub instead_of: Option<WriteId>,
}

/// What is kept of a success.
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
    /// What is known of a request; nothing once it is to be forgotten. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn replay(&self, key: &ReplayKey, now: Timestamp) -> Result<Option<ReplayRecord>, Error> {
        let key = Item::from([("pk".to_owned(), text(&key.0))]);
        let record: Option<ReplayRecord> = self.read(&self.tables.clients, key).await?;
        // The table's own sweeper may come days late.
        Ok(record.filter(|record| record.expires_at > now.secs()))
    }

    /// Notes that `run` is about to take its seat in `lobby_id`, whose token will tell `taken_at`; whether it may. Another run
    /// may be doing so, or have done. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; it may be noted all the same.
    pub async fn aim_run(
        &self,
        run: &Run,
        lobby_id: &LobbyId,
        taken_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let change = "SET #body = :body, #seat = :seat, #run = :run, #lobby = :lobby, #taken_at = :taken_at, \
                      #lease_until = :lease, #expires_at = :expiry REMOVE #answer, #key_id, #is_held";
        let condition = if run.instead_of.is_some() { IS_LEFT_ALONE } else { IS_OWN };
        let mut write = self
            .client_update(run.key.0.clone(), change, Some(condition))
            .expression_attribute_values(":body", text(&run.body))
            .expression_attribute_values(":seat", text(run.seat.as_str()))
            .expression_attribute_values(":run", text(run.id.as_str()))
            .expression_attribute_values(":lobby", text(lobby_id.as_str()))
            .expression_attribute_values(":taken_at", number(taken_at))
            .expression_attribute_values(":now_secs", number(now.secs()))
            .expression_attribute_values(":lease", number(now + RUN_LEASE))
            .expression_attribute_values(":expiry", number((now + REPLAY_LIFE).secs()));
        if let Some(seen) = &run.instead_of {
            write = write
                .expression_attribute_values(":seen", text(seen.as_str()))
                .expression_attribute_values(":now", number(now));
        }
        Ok(self.update::<ReplayRecord>(write).await?.is_ok())
    }

    /// Keeps the answer of `run`, without its token; whether it did, which it does not when another run went on in its place.
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_answer(
        &self,
        run: &Run,
        answer: &KeptAnswer<'_>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let change = "SET #answer = :answer, #key_id = :key_id, #is_held = :held, #expires_at = :expiry";
        let condition = "#run = :run";
        let write = self
            .client_update(run.key.0.clone(), change, Some(condition))
            .expression_attribute_values(":answer", text(answer.json))
            .expression_attribute_values(":key_id", text(answer.key_id))
            .expression_attribute_values(":held", AttributeValue::Bool(answer.is_held))
            .expression_attribute_values(":run", text(run.id.as_str()))
            .expression_attribute_values(":expiry", number((now + REPLAY_LIFE).secs()));
        self.update::<ReplayRecord>(write).await.map(|kept| kept.is_ok())
    }

    /// Forgets a request whose `run` took no seat. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn forget_run(&self, run: &Run, now: Timestamp) -> Result<(), Error> {
        let change = "SET #expires_at = :now";
        let condition = "#run = :run AND attribute_not_exists(#answer)";
        let write = self
            .client_update(run.key.0.clone(), change, Some(condition))
            .expression_attribute_values(":now", number(now.secs()))
            .expression_attribute_values(":run", text(run.id.as_str()));
        self.update::<ReplayRecord>(write).await.map(|_| ())
    }
}

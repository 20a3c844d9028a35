//! Lobbies: looking for candidates, taking seats.

use aws_sdk_dynamodb::{
    operation::update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    types::{KeysAndAttributes, ReturnValue, ReturnValuesOnConditionCheckFailure},
};
use futures_util::future::try_join_all;
use serde::Deserialize;

use super::{Item, Store, expressions::names, failure, from_item, number, text};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{LobbyId, SeatId},
    lobby::{Entry, Lobby, Refusal},
    models::{Pool, ServerKey, Tags},
};

/// The index of lobbies that a find may look at: pool, then `joinable_from`. Eventually consistent: a hint.
pub const CANDIDATES_INDEX: &str = "candidates";
/// The index of the lobbies of a game server, oldest first.
pub const BY_SERVER_INDEX: &str = "by_server";

/// What the index of candidates knows of a lobby.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Candidate {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// Where it belongs.
    pub pool: Pool,
    /// From when it may have a free seat.
    pub joinable_from: Timestamp,
    /// Its tags.
    #[serde(default)]
    pub tags: Tags,
}

/// A seat that somebody wants in a certain lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatClaim {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// The pool that the lobby must belong to.
    pub pool: Pool,
    /// The seat, fresh for each find, so that a repeated write is recognised.
    pub seat_id: SeatId,
    /// Until when it waits for its player.
    pub until: Timestamp,
    /// Whether the lobby goes out of sight with it.
    pub hiding: Hiding,
}

/// Whether taking a seat also moves the lobby out of sight of the index, until the time given: when its first seat lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hiding {
    /// It does not.
    No,
    /// It does if this is the last seat; when it is not, a second write takes the seat and hides nothing.
    IfLast {
        /// Seats taken when only one is left.
        taken: u32,
        /// When the first seat lapses.
        lapse: Timestamp,
    },
    /// It does: the seats still free are promised to other finds of the burst.
    Promised(Timestamp),
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatOutcome {
    /// The seat is taken; the lobby as it then was.
    Taken(Box<Lobby>),
    /// It is not; the lobby as it was, unless there is none.
    Refused(Refusal, Option<Box<Lobby>>),
}

/// Items that DynamoDB reads in one batch.
const BATCH_MAX: usize = 100;
/// Attempts at one lobby: a plain write, a take-over of seats seen lapsed, and once more when that race was lost.
const ATTEMPTS: usize = 4;

/// What every seat taken by a find is conditioned on, but for the capacity (I6). That a lobby is neither closed, private nor
/// ended is one condition: whatever makes it so removes `joinable_from`, and nothing but reopening sets it again.
const FINDABLE: &str = "#pool = :pool AND attribute_exists(#joinable_from) AND #lease_until > :now \
                        AND attribute_not_exists(#reserved.#seat)";

impl Store {
    /// Up to `limit` lobbies of `pool` that may have a free seat at `now`, oldest first.
    ///
    /// One query of the index; 0.5 read units for each started 4 KB. The index may lag: each entry may be wrong.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn candidates(
        &self,
        pool: &Pool,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let mut candidates = Vec::new();
        let mut start = None;
        loop {
            let condition = "#pool = :pool AND #joinable_from <= :now";
            let answer = self
                .client
                .query()
                .table_name(&self.tables.lobbies)
                .index_name(CANDIDATES_INDEX)
                .key_condition_expression(condition)
                .set_expression_attribute_names(Some(names(&[condition])))
                .expression_attribute_values(":pool", text(pool.to_string()))
                .expression_attribute_values(":now", number(now))
                .limit(i32::try_from(limit - candidates.len()).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start)
                .return_consumed_capacity(self.meter.mode())
                .send()
                .await
                .map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            for item in answer.items.unwrap_or_default() {
                candidates.push(from_item(item)?);
            }
            start = answer.last_evaluated_key;
            if start.is_none() || candidates.len() >= limit {
                return Ok(candidates);
            }
        }
    }

    /// The lobbies of `ids` that exist, in no order, eventually consistent. One call for each 100, 0.5 read units each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies(&self, ids: &[LobbyId]) -> Result<Vec<Lobby>, Error> {
        let batches = ids.chunks(BATCH_MAX).map(|ids| {
            let key = |id: &LobbyId| Item::from([("lobby_id".to_owned(), text(id.as_str()))]);
            self.batch_get(&self.tables.lobbies, ids.iter().map(key).collect())
        });
        try_join_all(batches).await?.into_iter().flatten().map(from_item).collect()
    }

    /// The lobby `id` as it now is; consistent, one read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobby(&self, id: &LobbyId) -> Result<Option<Lobby>, Error> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.tables.lobbies)
            .key("lobby_id", text(id.as_str()))
            .consistent_read(true)
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        answer.item.map(from_item).transpose()
    }

    /// Up to `limit` live lobbies of `server`, oldest first: their ids. One query of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies_of_server(&self, server: &ServerKey, limit: usize) -> Result<Vec<LobbyId>, Error> {
        #[derive(Deserialize)]
        struct Key {
            lobby_id: LobbyId,
        }
        let answer = self
            .client
            .query()
            .table_name(&self.tables.lobbies)
            .index_name(BY_SERVER_INDEX)
            .key_condition_expression("#server = :server")
            .expression_attribute_names("#server", "server")
            .expression_attribute_values(":server", text(server.to_string()))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        let keys = answer.items.unwrap_or_default().into_iter().map(from_item::<Key>);
        keys.map(|key| key.map(|key| key.lobby_id)).collect()
    }

    /// Takes a seat in one conditional write that re-checks everything; never trusts what the caller knew.
    ///
    /// Conditioned on capacity, not on what was read: n claims on n free seats all succeed the first time. Seats that
    /// lapsed are freed by the same write that takes one, named as the refused write's answer shows them. A claim whose
    /// first write succeeded unheard recognises its seat and succeeds. One write unit for a lobby up to 1 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; the seat may then be taken all the same and lapses by itself (I4).
    pub async fn take_seat(&self, claim: &SeatClaim, now: Timestamp) -> Result<SeatOutcome, Error> {
        let mut write = self.take_free_seat(claim, claim.hiding, now);
        let mut refusal = SeatOutcome::Refused(Refusal::Full, None);
        for _ in 0..ATTEMPTS {
            let lobby = match self.update_lobby(write).await? {
                Ok(lobby) => return Ok(SeatOutcome::Taken(Box::new(lobby))),
                Err(None) => return Ok(SeatOutcome::Refused(Refusal::Missing, None)),
                Err(Some(lobby)) => lobby,
            };
            if lobby.reserved.contains_key(&claim.seat_id) {
                return Ok(SeatOutcome::Taken(Box::new(lobby)));
            }
            write = match lobby.entry(&claim.pool, now) {
                Entry::Free => self.take_free_seat(claim, Hiding::No, now),
                Entry::TakeOver(lapsed) => self.take_over_seat(claim, &lobby, &lapsed, now),
                Entry::Refused(refusal) => return Ok(SeatOutcome::Refused(refusal, Some(Box::new(lobby)))),
            };
            refusal = SeatOutcome::Refused(Refusal::Full, Some(Box::new(lobby)));
        }
        Ok(refusal)
    }

    /// Moves a lobby that is full out of sight of the index until its first seat lapses; a hint, no more.
    ///
    /// Does nothing when the lobby is no longer full. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn hide_full_lobby(&self, lobby: &Lobby) -> Result<(), Error> {
        let update = "SET #joinable_from = :lapse";
        // Later seats lapse later, so a concurrent hint is at least as late as this one.
        let condition = "#taken >= #max_players AND #joinable_from < :lapse";
        let write = self
            .client
            .update_item()
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[update, condition])))
            .expression_attribute_values(":lapse", number(lobby.first_lapse()));
        self.update_lobby(self.on_lobby(write, &lobby.lobby_id)).await.map(|_| ())
    }

    fn take_free_seat(&self, claim: &SeatClaim, hiding: Hiding, now: Timestamp) -> UpdateItemFluentBuilder {
        let hide = if hiding == Hiding::No { "" } else { ", #joinable_from = :lapse" };
        let is_last = if matches!(hiding, Hiding::IfLast { .. }) { " AND #taken = :last" } else { "" };
        let update = format!("SET #taken = #taken + :one, #reserved.#seat = :until{hide}");
        let condition = format!("{FINDABLE} AND #taken < #max_players{is_last}");
        let mut write = self
            .client
            .update_item()
            .set_expression_attribute_names(Some(names(&[&update, &condition])))
            .expression_attribute_values(":one", number(1))
            .update_expression(update)
            .condition_expression(condition);
        if let Hiding::IfLast { lapse, .. } | Hiding::Promised(lapse) = hiding {
            write = write.expression_attribute_values(":lapse", number(lapse));
        }
        if let Hiding::IfLast { taken, .. } = hiding {
            write = write.expression_attribute_values(":last", number(taken));
        }
        self.claiming(write, claim, now)
    }

    /// The capacity here is a constant plus the lapsed seats: an expression can neither count those nor subtract in a
    /// condition, and a lobby's `max_players` never changes.
    fn take_over_seat(
        &self,
        claim: &SeatClaim,
        lobby: &Lobby,
        lapsed: &[SeatId],
        now: Timestamp,
    ) -> UpdateItemFluentBuilder {
        let count = u32::try_from(lapsed.len()).unwrap_or(u32::MAX);
        let attribute = |seat: &SeatId| {
            if lobby.reserved.contains_key(seat) { "#reserved" } else { "#connected" }
        };
        let paths: Vec<String> =
            lapsed.iter().enumerate().map(|(n, seat)| format!("{}.#lapsed{n}", attribute(seat))).collect();
        let update =
            format!("SET #taken = #taken - :freed, #reserved.#seat = :until REMOVE {}", paths.join(", "));
        let still_lapsed: Vec<String> = paths.iter().map(|path| format!("{path} <= :now")).collect();
        let condition = format!("{FINDABLE} AND #taken < :limit AND {}", still_lapsed.join(" AND "));
        let mut write = self
            .client
            .update_item()
            .set_expression_attribute_names(Some(names(&[&update, &condition])))
            .expression_attribute_values(":freed", number(count.saturating_sub(1)))
            .expression_attribute_values(":limit", number(lobby.max_players.saturating_add(count)))
            .update_expression(update)
            .condition_expression(condition);
        for (n, seat) in lapsed.iter().enumerate() {
            write = write.expression_attribute_names(format!("#lapsed{n}"), seat.as_str());
        }
        self.claiming(write, claim, now)
    }

    fn claiming(
        &self,
        write: UpdateItemFluentBuilder,
        claim: &SeatClaim,
        now: Timestamp,
    ) -> UpdateItemFluentBuilder {
        let write = write
            .expression_attribute_names("#seat", claim.seat_id.as_str())
            .expression_attribute_values(":until", number(claim.until))
            .expression_attribute_values(":pool", text(claim.pool.to_string()))
            .expression_attribute_values(":now", number(now));
        self.on_lobby(write, &claim.lobby_id)
    }

    fn on_lobby(&self, write: UpdateItemFluentBuilder, id: &LobbyId) -> UpdateItemFluentBuilder {
        write
            .table_name(&self.tables.lobbies)
            .key("lobby_id", text(id.as_str()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Sends a conditional update of a lobby: `Ok` with the lobby after it, `Err` with the lobby that refused it.
    async fn update_lobby(
        &self,
        write: UpdateItemFluentBuilder,
    ) -> Result<Result<Lobby, Option<Lobby>>, Error> {
        match write.return_consumed_capacity(self.meter.mode()).send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                let item =
                    answer.attributes.ok_or_else(|| Error::Bug("an update returned no item".to_owned()))?;
                from_item(item).map(Ok)
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    self.meter.refused(1.0);
                    refused.item.clone().map(from_item).transpose().map(Err)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    pub(super) async fn batch_get(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        let mut keys = keys;
        while !keys.is_empty() {
            let request = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut keys)))
                .build()
                .map_err(|error| Error::Bug(error.to_string()))?;
            let answer = self
                .client
                .batch_get_item()
                .request_items(table, request)
                .return_consumed_capacity(self.meter.mode())
                .send()
                .await
                .map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            let found = items.len();
            items.extend(answer.responses.unwrap_or_default().into_values().flatten());
            if let Some(rest) = answer.unprocessed_keys.and_then(|mut rest| rest.remove(table)) {
                if items.len() == found {
                    return Err(Error::Unavailable("DynamoDB: a batch made no progress".to_owned()));
                }
                keys = rest.keys;
            }
        }
        Ok(items)
    }
}

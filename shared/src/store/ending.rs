//! Ending lobbies: when somebody asks for it, when they are empty, when their room is needed.

use std::time::Duration;

use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{
        CancellationReason, Delete, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
        builders::UpdateBuilder,
    },
};

use crate::{
    base::{
        ambient::{Ambient, Timestamp},
        pauses::Pauses,
    },
    models::{
        errors::Error,
        ids::ServerKey,
        lobby::{EndCause, Lobby, STARTING_MAX, Stage},
    },
    store::{
        client::Store,
        conflicts::{is_accepted, refused},
        expressions::names,
        failures::failure,
        items::{from_item, number, text, to_item},
        lobbies::unvacated_since,
        transactions::update,
    },
};

/// How long an ended lobby stays readable, so that late calls learn that it ended.
const ENDED_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// Tries of one ending that meets other transactions.
const ATTEMPTS: u32 = 8;
/// Pauses after conflicts of transactions: one takes some ten milliseconds.
pub(crate) const CONFLICT_PAUSES: Pauses =
    Pauses::doubling(Duration::from_millis(8)).up_to(Duration::from_millis(128)).jittered();

/// What became of ending a lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndOutcome {
    /// It has ended; its place is free.
    Ended,
    /// It had ended before.
    AlreadyEnded,
    /// The cause no longer holds: a seat was taken, a lease revived.
    Outdated,
}

/// The transaction's parts, in its order.
const LOBBY_PART: usize = 0;
const SERVER_PART: usize = 1;

impl Store {
    /// Ends `lobby`, as seen, for `cause`, and gives back its place on the server, to which its part of the
    /// cap stays allotted.
    ///
    /// One transaction of two items, 2 write units each and those of the indexes; its tags, state and
    /// configuration, where it has them, are deleted with it, at 2 write units for each KB.
    ///
    /// # Errors
    /// [`Error::Contention`] when other transactions came between each time; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn end_lobby(
        &self,
        lobby: &Lobby,
        cause: EndCause,
        ambient: &Ambient,
    ) -> Result<EndOutcome, Error> {
        let Some(server) = lobby.server.as_ref().filter(|_| lobby.stage != Stage::Ended) else {
            return Ok(EndOutcome::AlreadyEnded);
        };
        for tries in 0..ATTEMPTS {
            if tries > 0 {
                CONFLICT_PAUSES.wait(tries - 1, ambient).await;
            }
            if let Some(outcome) = self.try_to_end(lobby, server, cause, ambient.now()).await? {
                if outcome == EndOutcome::Ended && lobby.is_draining {
                    self.clean_up(server, ambient.now()).await;
                }
                return Ok(outcome);
            }
        }
        Err(Error::Contention)
    }

    /// The lobby has ended: that its deregistered server's record stays is no failure of that.
    async fn clean_up(&self, server: &ServerKey, now: Timestamp) {
        if let Err(error) = self.let_deregistered_server_go(server, now).await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(server.id = %server.server_id, cause, "a deregistered server's record stays");
        }
    }

    async fn try_to_end(
        &self,
        lobby: &Lobby,
        server: &ServerKey,
        cause: EndCause,
        now: Timestamp,
    ) -> Result<Option<EndOutcome>, Error> {
        let mut parts = vec![
            update(self.end_as_seen(lobby, cause, now)?)?,
            update(self.give_back_place(server, lobby.is_draining, cause, now))?,
        ];
        let has_tags = !lobby.tag_digests.is_empty();
        let data = [(lobby.has_state, "state"), (lobby.has_config, "config"), (has_tags, "tags")];
        for (is_there, part) in data {
            if is_there {
                let delete = Delete::builder()
                    .table_name(&self.tables.lobby_data)
                    .key("lobby_id", text(lobby.lobby_id.as_str()))
                    .key("part", text(part))
                    .build()
                    .map_err(|error| Error::Bug(error.to_string()))?;
                parts.push(TransactWriteItem::builder().delete(delete).build());
            }
        }
        let part_count = parts.len();
        let call = self
            .client
            .transact_write_items()
            .set_transact_items(Some(parts))
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(Some(EndOutcome::Ended))
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                    self.meter.refused(2.0 * part_count as f64);
                    read_refusal(canceled.cancellation_reasons(), cause)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    fn end_as_seen(&self, lobby: &Lobby, cause: EndCause, now: Timestamp) -> Result<UpdateBuilder, Error> {
        let change = "SET #stage = :ended, #expires_at = :expiry REMOVE #joinable_from, #server";
        let condition = match cause {
            EndCause::Asked | EndCause::ServerRestarted => "#stage <> :ended",
            EndCause::ServerDead => "#stage <> :ended AND #lease_until <= :now",
            EndCause::NeverReady => "#stage = :starting AND #created_at <= :start_limit",
            EndCause::Idle => "#stage = :ready AND #reserved = :reserved AND #connected = :connected",
        };
        let mut condition = format!("attribute_exists(#server) AND {condition}");
        // Its idle time begins anew with each seat that is given up.
        if cause == EndCause::Idle {
            condition = format!("{condition} AND {}", unvacated_since(lobby));
        }
        let mut seen = to_item(lobby)?;
        let mut seats = |name: &str| {
            seen.remove(name).ok_or_else(|| Error::Bug(format!("a lobby serialized without `{name}`")))
        };
        let update = Update::builder()
            .table_name(&self.tables.lobbies)
            .key("lobby_id", text(lobby.lobby_id.as_str()))
            .update_expression(change)
            .set_expression_attribute_names(Some(names(&[change, &condition])))
            .condition_expression(condition)
            .expression_attribute_values(":ended", text("ended"))
            .expression_attribute_values(":expiry", number((now + ENDED_LIFE).secs()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Ok(match cause {
            EndCause::Asked | EndCause::ServerRestarted => update,
            EndCause::ServerDead => update.expression_attribute_values(":now", number(now)),
            EndCause::NeverReady => update
                .expression_attribute_values(":starting", text("starting"))
                .expression_attribute_values(":start_limit", number(now.before(STARTING_MAX))),
            EndCause::Idle => {
                let update = update
                    .expression_attribute_values(":ready", text("ready"))
                    .expression_attribute_values(":reserved", seats("reserved")?)
                    .expression_attribute_values(":connected", seats("connected")?);
                match lobby.vacated_at {
                    Some(vacated_at) => update.expression_attribute_values(":vacated_at", number(vacated_at)),
                    None => update,
                }
            }
        })
    }

    /// A dead server's lobby ends only while the server itself is dead: its heartbeat may be reviving lobbies
    /// just now. One of an earlier start only while its server gets no others: later it may be of the start
    /// that is there.
    fn give_back_place(
        &self,
        server: &ServerKey,
        is_deregistered: bool,
        cause: EndCause,
        now: Timestamp,
    ) -> UpdateBuilder {
        let change = if is_deregistered {
            "SET #used = #used - :one"
        } else {
            "SET #used = #used - :one, #free_from = #ranked_at"
        };
        let condition = match cause {
            EndCause::ServerDead => "#used > :zero AND #lease_until <= :now",
            EndCause::ServerRestarted => "#used > :zero AND attribute_exists(#is_clearing)",
            EndCause::Asked | EndCause::NeverReady | EndCause::Idle => "#used > :zero",
        };
        let update = Update::builder()
            .table_name(&self.tables.servers)
            .key("server", text(server.to_string()))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":zero", number(0))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if cause == EndCause::ServerDead {
            update.expression_attribute_values(":now", number(now))
        } else {
            update
        }
    }
}

/// What a canceled ending came to; nothing when it only met another transaction.
fn read_refusal(reasons: &[CancellationReason], cause: EndCause) -> Result<Option<EndOutcome>, Error> {
    if let Some(reason) = refused(reasons, LOBBY_PART) {
        let item = reason.item().filter(|item| !item.is_empty()).cloned();
        let lobby: Option<Lobby> = item.map(from_item).transpose()?;
        let has_ended = lobby.is_none_or(|lobby| lobby.stage == Stage::Ended);
        return Ok(Some(if has_ended { EndOutcome::AlreadyEnded } else { EndOutcome::Outdated }));
    }
    match refused(reasons, SERVER_PART) {
        Some(_) if matches!(cause, EndCause::ServerDead | EndCause::ServerRestarted) => {
            Ok(Some(EndOutcome::Outdated))
        }
        // Whatever has the lobby locked may have given its place back already.
        Some(_) if is_accepted(reasons, LOBBY_PART) => {
            Err(Error::Bug("a lobby's game server does not know of it".to_owned()))
        }
        _ => Ok(None),
    }
}

/// Ends a lobby that was met in a state in which it may end, after the work that met it was done: whatever
/// fails here is put right by the next heartbeat, or by the next find that needs the room.
pub(crate) async fn end_in_passing(store: &Store, lobby: &Lobby, cause: EndCause, ambient: &Ambient) {
    match store.end_lobby(lobby, cause, ambient).await {
        Ok(outcome) => {
            tracing::info!(lobby.id = %lobby.lobby_id, ?cause, ?outcome, "a lobby that nobody needs was met");
        }
        Err(error) => {
            let cause = error.cause().unwrap_or("others changed it at the same time").to_owned();
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a lobby could not be ended in passing");
        }
    }
}

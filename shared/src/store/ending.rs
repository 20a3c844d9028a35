//! Ending lobbies: on request, when they are empty, or to free capacity.

use std::time::Duration;

use aws_sdk_dynamodb::types::CancellationReason;

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
        items::{from_item, number, to_item},
        lobby_data::Part,
        seats::unvacated_since,
        writes::Write,
    },
};

/// How long an ended lobby stays readable, so that late calls learn that it ended.
const ENDED_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// Tries of one ending that conflicts with other transactions.
const ATTEMPTS: u32 = 8;
/// Pauses after conflicts of transactions: one takes some ten milliseconds.
pub(crate) const CONFLICT_PAUSES: Pauses =
    Pauses::doubling(Duration::from_millis(8)).up_to(Duration::from_millis(128)).jittered();

/// The result of ending a lobby.
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
    /// [`Error::Contention`] when other transactions conflicted each time; [`Error::Unavailable`],
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

    /// The lobby has ended, so a failure to remove its deregistered server's record does not fail the call.
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
        let mut parts = vec![self.end_as_seen(lobby, cause, now)?, self.give_back_place(server, cause, now)];
        let has_tags = !lobby.tag_digests.is_empty();
        let data = [(lobby.has_state, Part::State), (lobby.has_config, Part::Config), (has_tags, Part::Tags)];
        for (_, part) in data.into_iter().filter(|(is_there, _)| *is_there) {
            parts.push(self.on_lobby_data(&lobby.lobby_id, part).delete());
        }
        match self.transact(parts).await? {
            Ok(()) => Ok(Some(EndOutcome::Ended)),
            Err(reasons) => read_refusal(&reasons, cause),
        }
    }

    fn end_as_seen(&self, lobby: &Lobby, cause: EndCause, now: Timestamp) -> Result<Write, Error> {
        let condition = match cause {
            EndCause::Requested | EndCause::ServerRestarted => "#stage <> :ended",
            EndCause::ServerDead => "#stage <> :ended AND #lease_until <= :now",
            EndCause::NeverReady => "#stage = :starting AND #created_at <= :start_limit",
            EndCause::Idle => "#stage = :ready AND #reserved = :reserved AND #connected = :connected",
            // Who connects or comes changes what is reserved.
            EndCause::Unused => "#stage = :ready AND #reserved = :reserved",
        };
        let mut condition = format!("attribute_exists(#server) AND {condition}");
        // Each seat that is given up restarts the idle time.
        if cause == EndCause::Idle {
            condition = format!("{condition} AND {}", unvacated_since(lobby));
        }
        let mut seen = to_item(lobby)?;
        let mut seats = |name: &str| {
            seen.remove(name).ok_or_else(|| Error::Bug(format!("a lobby serialized without `{name}`")))
        };
        let end = self
            .on_lobby(&lobby.lobby_id)
            .change("SET #stage = :ended, #expires_at = :expiry REMOVE #joinable_from, #room, #server")
            .when(condition)
            .with(":expiry", number((now + ENDED_LIFE).secs()));
        Ok(match cause {
            EndCause::Requested | EndCause::ServerRestarted => end,
            EndCause::ServerDead => end.with(":now", number(now)),
            EndCause::NeverReady => end.with(":start_limit", number(now.before(STARTING_MAX))),
            EndCause::Unused => end.with(":reserved", seats("reserved")?),
            EndCause::Idle => end
                .with(":reserved", seats("reserved")?)
                .with(":connected", seats("connected")?)
                .with(":vacated_at", lobby.vacated_at.map(number)),
        })
    }

    /// A dead server's lobby ends only while the server itself is dead: its heartbeat may be reviving lobbies
    /// just now. A lobby of an earlier start ends only while its server gets no other lobbies: later it may
    /// be of the current start.
    fn give_back_place(&self, server: &ServerKey, cause: EndCause, now: Timestamp) -> Write {
        let condition = match cause {
            EndCause::ServerDead => "#used > :zero AND #lease_until <= :now",
            EndCause::ServerRestarted => "#used > :zero AND attribute_exists(#is_clearing)",
            EndCause::Requested | EndCause::NeverReady | EndCause::Idle | EndCause::Unused => "#used > :zero",
        };
        self.on_server(server)
            .change("SET #used = #used - :one, #free_from = #ranked_at")
            .when(condition)
            .with(":now", (cause == EndCause::ServerDead).then(|| number(now)))
    }
}

/// The result of a canceled ending; `None` when it only conflicted with another transaction.
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
        // The transaction that has locked the lobby may already have given its place back.
        Some(_) if is_accepted(reasons, LOBBY_PART) => {
            Err(Error::Bug("a lobby's game server does not know of it".to_owned()))
        }
        _ => Ok(None),
    }
}

/// Ends a lobby that a request read in a state in which it may end, after the request's own work. If this
/// fails, the next heartbeat, or the next find that needs capacity, ends it.
pub(crate) async fn end_in_passing(store: &Store, lobby: &Lobby, cause: EndCause, ambient: &Ambient) {
    match store.end_lobby(lobby, cause, ambient).await {
        Ok(outcome) => {
            tracing::info!(lobby.id = %lobby.lobby_id, ?cause, ?outcome, "tried to end a lobby in passing");
        }
        Err(error) => {
            let cause = error.cause().unwrap_or("others changed it at the same time").to_owned();
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "could not end a lobby in passing");
        }
    }
}

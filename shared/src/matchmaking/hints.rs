//! Correcting what the index shows of lobbies without a seat. One that cannot be written fails no find.

use std::time::Duration;

use futures_util::future::try_join_all;

use crate::{
    base::ambient::{Ambient, Timestamp},
    matchmaking::search::searched,
    models::{
        availability::{Availability, Refusal},
        errors::Error,
        ids::LobbyId,
        lobby::{EndCause, Lobby},
    },
    rules::criteria::SearchedPool,
    seating::seeker::Seeker,
    store::{client::Store, ending::end_in_passing},
};

/// Lobbies of silent servers that one look hides; later looks hide the others.
const HIDDEN_AT_ONCE: usize = 16;
/// Lobbies whose room for parties one look notes; later looks note that of the others.
const ROOMS_NOTED_AT_ONCE: usize = 4;
/// The find that filled a lobby crashed if the lobby is still in sight after this long. The next find that
/// sees it hides it.
const STALE_HINT_AGE: Duration = Duration::from_secs(2);

/// Hides lobbies without a seat from later finds: those of silent servers until their next heartbeat, and
/// one full lobby whose filler must have crashed. Ends one lobby that never became ready. A party also
/// notes the room of some that have less of it than the index shows.
pub(super) async fn correct(
    store: &Store,
    ambient: &Ambient,
    lobbies: &[Lobby],
    pools: &[SearchedPool],
    seeker: &Seeker,
    now: Timestamp,
) -> Result<(), Error> {
    let is_misleading = |lobby: &&Lobby| lobby.room.is_some() && lobby.room_at(now) < lobby.room;
    let misled = lobbies.iter().filter(|_| seeker.seats().count() > 1).filter(is_misleading);
    try_join_all(misled.take(ROOMS_NOTED_AT_ONCE).map(|lobby| note_room(store, lobby, now))).await?;
    let is_stale = |lobby: &&Lobby| {
        let Some(searched) = searched(pools, &lobby.pool) else {
            return false;
        };
        let in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
        let last_taken = lobby.reserved.values().max().map(|until| until.before(searched.reservation));
        let filled_long_ago = last_taken.is_none_or(|taken_at| now.since(taken_at) >= STALE_HINT_AGE);
        in_sight
            && filled_long_ago
            && lobby.availability_for_find(1, now) == Availability::Refused(Refusal::Full)
    };
    if let Some(lobby) = lobbies.iter().find(is_stale) {
        hide_full(store, lobby).await?;
    }
    if let Some(lobby) = lobbies.iter().find(|lobby| lobby.is_overdue(now)) {
        end_in_passing(store, lobby, EndCause::NeverReady, ambient).await;
    }
    let silent = lobbies.iter().filter(|lobby| {
        let in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
        in_sight && lobby.availability_for_find(1, now) == Availability::Refused(Refusal::LeaseLapsed)
    });
    hide_dead(store, silent.map(|lobby| &lobby.lobby_id), now).await
}

/// Hides a full lobby. The find already holds its seat, so an unwritten hint must not fail it.
pub(super) async fn hide_full(store: &Store, lobby: &Lobby) -> Result<(), Error> {
    match store.hide_full_lobby(lobby).await {
        Err(Error::Unavailable(cause)) => {
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a full lobby stays in sight until the next find");
            Ok(())
        }
        other => other,
    }
}

/// The same for its room for parties.
pub(super) async fn note_room(store: &Store, lobby: &Lobby, now: Timestamp) -> Result<(), Error> {
    match store.note_room(lobby, now).await {
        Err(Error::Unavailable(cause)) => {
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "parties see a lobby's room late");
            Ok(())
        }
        other => other,
    }
}

/// Hides some lobbies of silent servers. A hint that cannot be written must not fail the find.
pub(super) async fn hide_dead(
    store: &Store,
    lobby_ids: impl Iterator<Item = &LobbyId>,
    now: Timestamp,
) -> Result<(), Error> {
    let some = lobby_ids.take(HIDDEN_AT_ONCE);
    match try_join_all(some.map(|lobby_id| store.hide_dead_lobby(lobby_id, now))).await {
        Ok(_) => Ok(()),
        Err(Error::Unavailable(cause)) => {
            tracing::warn!(cause, "lobbies of a silent server stay in sight until the next find");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

//! Seats that become free.
//!
//! When a seat of a full lobby becomes free, or a lobby reopens, this file announces it at the head of the
//! lobby's criteria ([`crate::store::creation`]). When a lobby has room for parties again, it notes that in
//! their index.

use std::{sync::Arc, time::Duration};

use crate::{
    auth::matchmaker::SeatRight,
    base::{
        ambient::{Ambient, Timestamp},
        cache::TimedMap,
    },
    models::{
        client::Client,
        errors::Error,
        ids::{BurstSecret, SeatId},
        lifecycle::{Illegal, Transition},
        lobby::{EndCause, Lobby},
    },
    store::{
        client::Store,
        creation::{BURST_WINDOW, HeadKey},
        ending::end_in_passing,
        holds::Departure,
        transitions::TransitionOutcome,
    },
};

/// Heads remembered.
const HEADS_MAX: usize = 1_024;

/// Shows to parties that `lobby` has more room than their index shows.
///
/// As with an announcement, an unwritten hint must not fail the call.
pub(super) async fn show_more_room(store: &Store, lobby: &Lobby, now: Timestamp) {
    if lobby.room_at(now) <= lobby.room {
        return;
    }
    if let Err(error) = store.note_room(lobby, now).await {
        let cause = error.cause().unwrap_or("refused").to_owned();
        tracing::warn!(lobby.id = %lobby.lobby_id, cause, "parties see a lobby's room late");
    }
}

/// Releases seats, and tells finds of them.
#[derive(Clone, Debug)]
pub struct FreedSeats {
    store: Store,
    ambient: Ambient,
    /// Heads at which this instance announced a free seat, with the start of the head's burst: until that is
    /// old, the head accepts no other announcement.
    announced: Arc<TimedMap<HeadKey, ()>>,
}

impl FreedSeats {
    /// Seats of lobbies in `store`.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, announced: Arc::new(TimedMap::new(HEADS_MAX)) }
    }

    /// Frees a seat, connected or not, and its client's hold under a cap at one write unit. Finds can enter
    /// the lobby again, or it ends when it is empty and its mode keeps no empty lobbies. A retry is harmless.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::Contention`], [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn release(&self, right: &SeatRight) -> Result<(), Error> {
        self.leave(right, &Transition::Leave(right.seat().seat_id.clone())).await
    }

    /// The same when the player's connection ended. The seat may be kept for the player, and the client's
    /// hold with it. Another token than the connected one changes nothing.
    ///
    /// # Errors
    /// As [`FreedSeats::release`].
    pub async fn disconnect(&self, right: &SeatRight, keep: Option<Duration>) -> Result<(), Error> {
        self.leave(right, &Transition::Disconnect(right.seat().shown(), keep)).await
    }

    async fn leave(&self, right: &SeatRight, leave: &Transition) -> Result<(), Error> {
        let seat = right.seat();
        let (outcome, before) =
            self.store.make_transition_after(&seat.lobby_id, leave, self.ambient.now()).await?;
        let is_new = matches!(outcome, TransitionOutcome::Made(_));
        let lobby = outcome.accepted()?;
        if lobby.has_seat(&seat.seat_id) {
            return Ok(());
        }
        if let Some(client) = right.client() {
            let had_connected = before.is_none_or(|before| before.has_connected(&seat.seat_id));
            let departure =
                if is_new && had_connected { Departure::Disconnected } else { Departure::Released };
            self.release_hold(&client, &seat.seat_id, departure).await;
        }
        match lobby.end_cause(self.ambient.now()) {
            // Also on a retry: the first call may have crashed before this.
            Some(EndCause::Idle) => end_in_passing(&self.store, &lobby, EndCause::Idle, &self.ambient).await,
            _ if is_new => self.show(&lobby).await,
            _ => {}
        }
        Ok(())
    }

    /// Frees the seat of a player who gives it up before connecting, or while it is kept, and its client's
    /// hold under a cap at one write unit. A connected seat stays: its server frees it, and keeps it no more.
    /// An empty lobby stays too: the next find uses it, or ends it. A retry is harmless, and so is a lobby
    /// that is gone.
    ///
    /// # Errors
    /// [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn give_up(&self, right: &SeatRight) -> Result<(), Error> {
        let seat = right.seat();
        let give_up = Transition::GiveUp(seat.shown());
        let (outcome, before) =
            self.store.make_transition_after(&seat.lobby_id, &give_up, self.ambient.now()).await?;
        match outcome {
            TransitionOutcome::Made(lobby) if lobby.has_seat(&seat.seat_id) => return Ok(()),
            TransitionOutcome::Made(lobby) => self.show(&lobby).await,
            TransitionOutcome::AlreadyMade(lobby) if !lobby.has_seat(&seat.seat_id) => {}
            TransitionOutcome::Illegal(Illegal::StageUnknown, _) => return Err(Error::Contention),
            _ => return Ok(()),
        }
        // Also on a retry: the first call may have crashed before this.
        if let Some(client) = right.client() {
            let had_connected = before.is_some_and(|before| before.has_connected(&seat.seat_id));
            let departure = if had_connected { Departure::Disconnected } else { Departure::GaveUp };
            self.release_hold(&client, &seat.seat_id, departure).await;
        }
        Ok(())
    }

    /// The seat is already free, so a hold that stays a while must not fail the call.
    async fn release_hold(&self, client: &Client, seat_id: &SeatId, departure: Departure) {
        let now = self.ambient.now();
        if let Err(error) = self.store.release_hold(client, seat_id, departure, now).await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(cause, "a client's hold of a seat that it left stays for half a minute");
        }
    }

    /// Shows a seat of `lobby` that was left to the finds that may not see it.
    async fn show(&self, lobby: &Lobby) {
        self.show_room(lobby).await;
        // Only a full lobby was hidden from the index.
        if lobby.taken + 1 >= lobby.max_players {
            self.announce(lobby).await;
        }
    }

    /// Shows to parties that `lobby` has room for two again. More room than that is for heartbeats to show.
    pub(super) async fn show_room(&self, lobby: &Lobby) {
        if lobby.room.is_none() {
            show_more_room(&self.store, lobby, self.ambient.now()).await;
        }
    }

    /// Announces a free seat of `lobby` to finds that are about to create another.
    ///
    /// The seat is already free, so an unwritten hint must not fail the call.
    pub(super) async fn announce(&self, lobby: &Lobby) {
        if lobby.joinable_from.is_none() || lobby.taken >= lobby.max_players {
            return;
        }
        let now = self.ambient.now();
        let key = HeadKey::new(&lobby.pool, &lobby.tag_digests, lobby.max_players);
        if self.announced.get(&key, BURST_WINDOW, now).is_some() {
            return;
        }
        match self.store.announce_free_seat(key.clone(), BurstSecret::random(&self.ambient), lobby, now).await
        {
            Ok(began_at) => self.announced.put(key, (), began_at),
            Err(error) => {
                let cause = error.cause().unwrap_or("refused").to_owned();
                tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a free seat could not be announced");
                self.announced.put(key, (), now);
            }
        }
    }
}

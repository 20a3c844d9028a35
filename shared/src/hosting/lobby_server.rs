//! The operations of a lobby server on its lobby: ready, closed, publicity, state, players.
//!
//! A missing seat was left, or lapsed and was taken over. The lobby remembers the last eight that lapsed, so
//! that their players get that reason (decision 40).

use std::time::Duration;

use crate::{
    auth::matchmaker::{LobbyRight, SeatRight},
    base::ambient::Ambient,
    hosting::freed_seats::FreedSeats,
    models::{
        errors::Error,
        generations::ShownSeat,
        handed_on::HandedOn,
        ids::WriteId,
        lifecycle::{CONNECTED_MAX, Connect, Illegal, Transition},
        lobby::{EndCause, Lobby, Stage},
        publicity::Publicity,
    },
    store::{client::Store, ending::end_in_passing, transitions::TransitionOutcome},
};

/// The lobby server's side of a lobby.
#[derive(Clone, Debug)]
pub struct LobbyServer {
    store: Store,
    ambient: Ambient,
    freed: FreedSeats,
}

impl LobbyServer {
    /// Lobbies in `store`.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { freed: FreedSeats::new(store.clone(), ambient.clone()), store, ambient }
    }

    /// Makes the lobby ready: its reservations restart, and waiting finds respond. A retry is harmless.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`]; [`Error::LobbyStopped`], also when it should have become ready long ago,
    /// which ends it; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn ready(&self, right: &LobbyRight) -> Result<(), Error> {
        match self.transition(right, &Transition::Ready).await? {
            TransitionOutcome::Illegal(Illegal::Ended, lobby) if lobby.stage == Stage::Starting => {
                end_in_passing(&self.store, &lobby, EndCause::NeverReady, &self.ambient).await;
                Err(Error::LobbyStopped)
            }
            outcome => outcome.accepted().map(|_| ()),
        }
    }

    /// Closes the lobby to finds, or reopens it. A retry is harmless.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::LobbyStateConflict`] for opening a lobby
    /// whose game server deregistered; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_closed(&self, right: &LobbyRight, is_closed: bool) -> Result<(), Error> {
        let transition = if is_closed { Transition::Close } else { Transition::Reopen };
        self.change_sight(right, &transition).await
    }

    /// Makes the lobby public or private; who has its identifier can join it either way. A retry is harmless.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::Contention`], [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn set_publicity(&self, right: &LobbyRight, publicity: Publicity) -> Result<(), Error> {
        let transition = match publicity {
            Publicity::Public => Transition::MakePublic,
            Publicity::Private => Transition::MakePrivate,
        };
        self.change_sight(right, &transition).await
    }

    /// Makes a transition that takes the lobby out of sight or brings it there, where finds wait for seats.
    async fn change_sight(&self, right: &LobbyRight, transition: &Transition) -> Result<(), Error> {
        let outcome = self.transition(right, transition).await?;
        let is_new = matches!(outcome, TransitionOutcome::Made(_));
        let lobby = outcome.accepted()?;
        if is_new {
            self.freed.show_room(&lobby).await;
            self.freed.announce(&lobby).await;
        }
        Ok(())
    }

    /// Connects the player of `seat`, who holds the reserved seat until the disconnect, at most 8 h (I7).
    /// Returns whether another connection of the player may still be open, which this one replaces. One write
    /// unit for a lobby up to 1 KB, and a read unit for a player who came back. Another write unit, and two
    /// of the index, for the last reservation of a full lobby.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a player of another namespace; [`Error::PlayerInDifferentLobby`],
    /// [`Error::PlayerAlreadyConnected`], [`Error::PlayerRegistrationExpired`], [`Error::PlayerRemoved`];
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`], [`Error::LobbyStateConflict`];
    /// [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn connect(&self, right: &LobbyRight, seat: &SeatRight) -> Result<bool, Error> {
        check_place(right, seat)?;
        if seat.is_expired() {
            return Err(Error::PlayerRegistrationExpired);
        }
        let (shown, now) = (seat.seat().shown(), self.ambient.now());
        let ShownSeat { seat_id, generation } = shown.clone();
        // All tokens of a seat share the time of its first one.
        let since = if generation == 0 { now } else { seat.issued_at() };
        let (write, until) = (WriteId::random(&self.ambient), since + CONNECTED_MAX);
        let connect = Transition::Connect(Connect { seat: shown, write, until });
        let (outcome, before) = self.store.make_transition_after(right.lobby_id(), &connect, now).await?;
        self.keep_hidden(outcome.accepted()?.as_ref()).await;
        Ok(before.map_or(generation > 0, |before| before.connected.contains_key(&seat_id)))
    }

    /// Releases `seat`, connected or not, or keeps it for its player for a time `keep`, or else for the
    /// lobby's ([`FreedSeats::disconnect`]).
    ///
    /// # Errors
    /// As [`LobbyServer::connect`], of the player errors [`Error::PlayerInDifferentLobby`] alone; the right
    /// may have expired.
    pub async fn disconnect(
        &self,
        right: &LobbyRight,
        seat: &SeatRight,
        keep: Option<Duration>,
    ) -> Result<(), Error> {
        check_place(right, seat)?;
        self.freed.disconnect(seat, keep).await
    }

    /// Keeps the seat of each connected player of the lobby, for a time `keep`, or else for the lobby's: a
    /// server that crashed lost their tokens. A retry is harmless while none of them has connected again. One
    /// read unit for a lobby up to 4 KB, and a write for each 45 seats, at one unit for each started KB.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::Contention`], [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn disconnect_everyone(&self, right: &LobbyRight, keep: Option<Duration>) -> Result<(), Error> {
        let leaving = self.store.keep_connected(right.lobby_id(), keep, self.ambient.now()).await?;
        for seat in leaving {
            let leave = Transition::Disconnect(seat, Some(Duration::ZERO));
            self.transition(right, &leave).await?.accepted()?;
        }
        Ok(())
    }

    /// Removes the player of `seat`, connected or not, and seats no other player of the same client in this
    /// lobby for as long as `excluded_for`. Returns whether it can: a seat names its client under a limit of
    /// seats per client alone. A retry is harmless. Two write units for the client.
    ///
    /// # Errors
    /// As [`LobbyServer::disconnect`].
    pub async fn remove(
        &self,
        right: &LobbyRight,
        seat: &SeatRight,
        excluded_for: Duration,
    ) -> Result<bool, Error> {
        check_place(right, seat)?;
        let client = seat.client();
        if let Some(client) = client.as_ref().filter(|_| !excluded_for.is_zero()) {
            let now = self.ambient.now();
            // Before the seat is free: its player may search at once.
            self.store.keep_out(client, right.lobby_id(), now + excluded_for, now).await?;
        }
        self.freed.release(seat).await?;
        Ok(client.is_some() || excluded_for.is_zero())
    }

    /// Sets the lobby's state.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_state(&self, right: &LobbyRight, state: &HandedOn) -> Result<(), Error> {
        let lobby = self.store.lobby(right.lobby_id()).await?.ok_or(Error::LobbyNotFound)?;
        if lobby.is_over(self.ambient.now()) {
            return Err(Error::LobbyStopped);
        }
        // The lobby's end deletes the data that it is recorded to have. A lobby that ends between the two
        // writes leaves its state behind.
        if !lobby.has_state && !self.store.note_lobby_state(right.lobby_id()).await? {
            return Err(Error::LobbyStopped);
        }
        self.store.set_lobby_state(right.lobby_id(), state).await
    }

    async fn transition(
        &self,
        right: &LobbyRight,
        transition: &Transition,
    ) -> Result<TransitionOutcome, Error> {
        self.store.make_transition(right.lobby_id(), transition, self.ambient.now()).await
    }

    /// A full lobby comes into sight when its first reservation would have lapsed. Once all players are
    /// connected, that is far too early: it would precede lobbies with a free seat (I14).
    ///
    /// The player is already connected, so an unwritten hint must not fail the call.
    async fn keep_hidden(&self, lobby: &Lobby) {
        let is_early = lobby.joinable_from.is_some_and(|from| from < lobby.first_lapse());
        if !lobby.reserved.is_empty() || lobby.taken < lobby.max_players || !is_early {
            return;
        }
        if let Err(error) = self.store.hide_full_lobby(lobby).await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a full lobby comes into sight too early");
        }
    }
}

/// A lobby server decides about the seats of its own lobby alone.
fn check_place(right: &LobbyRight, seat: &SeatRight) -> Result<(), Error> {
    let seat = seat.seat();
    if seat.namespace_id != *right.namespace_id() {
        return Err(Error::Forbidden);
    }
    if seat.lobby_id != *right.lobby_id() {
        return Err(Error::PlayerInDifferentLobby);
    }
    Ok(())
}

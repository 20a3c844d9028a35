//! What a lobby server does with its own lobby: ready, closed, state, players.
//!
//! When a seat of a full lobby becomes free, or a lobby reopens, that is announced at the head of its
//! criteria ([`crate::store::creation`]). A seat that is gone was left, or expired and was taken over; the
//! lobby remembers the last eight of the latter, so that their players learn that they come too late
//! (decision 40).

use std::{sync::Arc, time::Duration};

use crate::{
    auth::{keys::TokenKeys, matchmaker::LobbyRight},
    base::{ambient::Ambient, cache::Aged},
    models::{
        client::Client,
        errors::Error,
        handed_on::HandedOn,
        ids::{BurstSecret, SeatId, WriteId},
        lifecycle::{Illegal, Transition},
        lobby::{EndCause, Lobby, Stage},
        token::{Claims, InvalidToken, PlayerSeat},
    },
    store::{
        client::Store,
        creation::{BURST_WINDOW, HeadKey},
        ending::end_in_passing,
        transitions::TransitionOutcome,
    },
};

/// The lobby server's side of a lobby.
#[derive(Clone, Debug)]
pub struct LobbyServer {
    store: Store,
    ambient: Ambient,
    /// Heads that this instance told of a free seat, each with when what it then had began: meanwhile it
    /// leaves others alone, and is one item.
    told: Arc<Aged<HeadKey, ()>>,
}

/// Heads remembered.
const HEADS_MAX: usize = 1_024;
/// How long after a seat of a lobby was left more such may be expected: longer than lobbies take that are
/// refilled all the time.
const ASTIR_FOR: Duration = Duration::from_secs(60);

impl LobbyServer {
    /// Lobbies in `store`.
    #[must_use]
    pub fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient, told: Arc::new(Aged::new(HEADS_MAX)) }
    }

    /// The lobby is ready: its reservations begin anew, finds that wait for it answer. Again: harmless.
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
            outcome => accepted(outcome).map(|_| ()),
        }
    }

    /// Closes the lobby to finds, or opens it to them again. Again: harmless.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::LobbyStateConflict`] for opening a lobby
    /// whose game server deregistered; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_closed(&self, right: &LobbyRight, is_closed: bool) -> Result<(), Error> {
        let transition = if is_closed { Transition::Close } else { Transition::Reopen };
        let outcome = self.transition(right, &transition).await?;
        let is_new = matches!(outcome, TransitionOutcome::Made(_));
        let lobby = accepted(outcome)?;
        // Nothing of a closed lobby is in the index: its shard may have been seen empty meanwhile. Again when
        // asked again, for the first may have crashed before it.
        if !is_closed && lobby.pool.shard > 0 {
            self.store.grow_shards(&lobby.pool, lobby.pool.shard + 1, self.ambient.now()).await?;
        }
        if is_new && !is_closed {
            self.announce(&lobby).await;
        }
        Ok(())
    }

    /// Connects the player whom `token` was given to: its reserved seat is held until it disconnects, at most
    /// 8 h (I7). One write unit for a lobby up to 1 KB; another one, and two of the index, when the last
    /// reservation of a full lobby is its.
    ///
    /// # Errors
    /// [`Error::BodyTokenInvalid`]; [`Error::Forbidden`] for a player of another namespace;
    /// [`Error::PlayerInDifferentLobby`], [`Error::PlayerAlreadyConnected`],
    /// [`Error::PlayerRegistrationExpired`], [`Error::PlayerRemoved`]; [`Error::LobbyNotFound`],
    /// [`Error::LobbyStopped`], [`Error::LobbyStateConflict`]; [`Error::Contention`], [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn connect(&self, right: &LobbyRight, token: &str, keys: &TokenKeys) -> Result<(), Error> {
        let seat = seat_of(right, token, keys)?;
        if keys.verify(token, self.ambient.now()) == Err(InvalidToken::Expired) {
            return Err(Error::PlayerRegistrationExpired);
        }
        let write = WriteId::random(&self.ambient);
        let lobby = accepted(self.transition(right, &Transition::Connect(seat.seat_id, write)).await?)?;
        self.keep_hidden(&lobby).await;
        Ok(())
    }

    /// Frees the seat of the player whom `token` was given to, connected or not, also for its client's cap at
    /// one write unit; the lobby can be found again, or ends when it is empty and its mode keeps no empty
    /// lobbies. Again: harmless.
    ///
    /// # Errors
    /// As [`LobbyServer::connect`], but for those of connecting; the token's age does not matter.
    pub async fn disconnect(&self, right: &LobbyRight, token: &str, keys: &TokenKeys) -> Result<(), Error> {
        let PlayerSeat { namespace_id, seat_id, client, .. } = seat_of(right, token, keys)?;
        let outcome = self.transition(right, &Transition::Leave(seat_id.clone())).await?;
        let is_new = matches!(outcome, TransitionOutcome::Made(_));
        let lobby = accepted(outcome)?;
        if let Some(address) = client {
            self.release(&Client { namespace_id, address }, &seat_id).await;
        }
        match lobby.end_cause(self.ambient.now()) {
            // Also when it was left before: whoever left last may have crashed on the way here.
            Some(EndCause::Idle) => end_in_passing(&self.store, &lobby, EndCause::Idle, &self.ambient).await,
            // Only a lobby that was full was out of the index's sight.
            _ if is_new && lobby.taken + 1 >= lobby.max_players => self.announce(&lobby).await,
            _ => {}
        }
        Ok(())
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
        // The lobby's end deletes what it is known to have. A lobby that ends between the two writes leaves
        // its state behind.
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

    /// A full lobby comes into sight when the first reservation in it was to lapse. Once everybody is
    /// connected that is far too early: until then it would stand in front of those with a free seat (I14).
    /// What a launch had put into shards goes back to the first one by the same write, so that later looks
    /// need not read the others.
    ///
    /// The player is connected already: a hint that cannot be written must not fail that.
    async fn keep_hidden(&self, lobby: &Lobby) {
        let is_early = lobby.joinable_from.is_some_and(|from| from < lobby.first_lapse());
        if !lobby.reserved.is_empty() || lobby.taken < lobby.max_players || !is_early {
            return;
        }
        // A pool in which seats are left and taken all the time still needs its shards.
        let is_astir = lobby.vacated_at.is_some_and(|at| self.ambient.now().since(at) < ASTIR_FOR);
        let shard = if is_astir { lobby.pool.shard } else { 0 };
        if let Err(error) = self.store.hide_full_lobby(lobby, shard).await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a full lobby comes into sight too early");
        }
    }

    /// The seat is free already: that the client's hold of it stays a while must not fail what freed it.
    async fn release(&self, client: &Client, seat_id: &SeatId) {
        if let Err(error) = self.store.release_hold(client, seat_id).await {
            let cause = error.cause().unwrap_or("refused").to_owned();
            tracing::warn!(cause, "a client's hold of a seat that it left stays for half a minute");
        }
    }

    /// The seat is free already: a hint that cannot be written must not fail what freed it.
    async fn announce(&self, lobby: &Lobby) {
        if lobby.joinable_from.is_none() || lobby.taken >= lobby.max_players {
            return;
        }
        let now = self.ambient.now();
        let key = HeadKey::new(&lobby.pool, &lobby.tag_digests, lobby.max_players);
        if self.told.get(&key, BURST_WINDOW, now).is_some() {
            return;
        }
        match self.store.announce_free_seat(key.clone(), BurstSecret::random(&self.ambient), lobby, now).await
        {
            Ok(began_at) => self.told.put(key, (), began_at),
            Err(error) => {
                let cause = error.cause().unwrap_or("refused").to_owned();
                tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a free seat could not be announced");
                self.told.put(key, (), now);
            }
        }
    }
}

fn accepted(outcome: TransitionOutcome) -> Result<Box<Lobby>, Error> {
    match outcome {
        TransitionOutcome::Made(lobby) | TransitionOutcome::AlreadyMade(lobby) => Ok(lobby),
        TransitionOutcome::Illegal(illegal, _) => Err(illegal.into()),
        TransitionOutcome::Missing => Err(Error::LobbyNotFound),
    }
}

/// The seat of a player token of any age, which must be one of the lobby's.
fn seat_of(right: &LobbyRight, token: &str, keys: &TokenKeys) -> Result<PlayerSeat, Error> {
    let Ok(Claims::Player(seat)) = keys.verify_at_any_age(token) else {
        return Err(Error::BodyTokenInvalid);
    };
    if seat.namespace_id != *right.namespace_id() {
        return Err(Error::Forbidden);
    }
    if seat.lobby_id != *right.lobby_id() {
        return Err(Error::PlayerInDifferentLobby);
    }
    Ok(seat)
}

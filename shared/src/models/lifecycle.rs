//! The lobby's state machine: which transitions its state allows, and why not.
//!
//! A lobby is in a [`Stage`], which never goes back, and carries two flags: closed to finds, and draining,
//! which is permanent. Its seats are free, reserved or connected. [`Lobby::check`] is the whole machine.
//!
//! | transition | from | to | otherwise |
//! |---|---|---|---|
//! | created | | starting; ready with `auto_ready` | |
//! | ready | starting, for 5 minutes | ready, reservations start again | ready: harmless; too late: it ends |
//! | close | starting, ready | closed, out of sight | closed: harmless |
//! | reopen | closed | open, in sight unless private | open: harmless; draining: conflict |
//! | make private | starting, ready | private, out of sight | private: harmless |
//! | make public | private | public, in sight unless closed | public: harmless |
//! | drain | starting, ready | closed permanently | draining: harmless |
//! | take a seat | starting, ready; lease alive | reserved | a named refusal |
//! | connect | ready; seat reserved, or connected by an older token | connected, 8 h at most | its code |
//! | leave | seat reserved or connected | free | no such seat: harmless |
//! | disconnect | seat reserved, or connected by the token | free; reserved where kept | else: harmless |
//! | disconnect | the newest token of a player who came back waits | it never connects; as after a rejoin | |
//! | give up | seat reserved | free | no such seat: harmless |
//! | give up | seat connected, and may be kept | connected, its player is leaving | else: harmless |
//! | rejoin | the newest token connected, or was left with | one more token | it waits: it again; its code |
//! | extend the lease | starting, ready | a later lease, in sight again | ended: nothing |
//! | end | starting, ready; cause holds | ended, readable for a day | ended: harmless; no cause: nothing |
//!
//! Finds take seats in open lobbies, joins in any. A draining lobby ends when it is empty, or when its server
//! sends no more heartbeats. Every other call on an ended lobby is `MATCHMAKER_LOBBY_STOPPED`.
//!
//! Of a seat's tokens the newest alone connects, once; see [`Generations`]. A seat that is kept lapses like a
//! reservation, and at the latest when its player's 8 h are over. What the player does with an older token
//! than the newest changes nothing, except that it asks for another one.
//!
//! The first write assumes the usual state of a lobby. A refused write returns the lobby. Then an illegal
//! transition gets its code, one that was made before is harmless, and one that is due is retried with the
//! state returned.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        generations::{Generations, ShownSeat},
        ids::{SeatId, StartMark, WriteId},
        lobby::{Lobby, SeatState, Stage},
    },
};

/// How long a connected player holds a seat without disconnecting (decision 31).
pub const CONNECTED_MAX: Duration = Duration::from_secs(8 * 3_600);

/// A change of a lobby's state that is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Starting to ready; the reservations restart.
    Ready,
    /// Closed to finds.
    Close,
    /// Open to finds again.
    Reopen,
    /// Found by nobody: players enter by its identifier.
    MakePrivate,
    /// Found and listed like any other.
    MakePublic,
    /// Closed permanently, to end when empty, by the start of its game server that deregistered.
    Drain(Option<StartMark>),
    /// A reserved seat to a connected one, or to one connected by a newer token.
    Connect(Connect),
    /// A reserved or connected seat to a free one.
    Leave(SeatId),
    /// A seat whose player disconnected to a free one, or to one that is kept for the given time; absent
    /// means the lobby's.
    Disconnect(ShownSeat, Option<Duration>),
    /// A reserved seat to a free one, by its player. A connected seat is its server's to free: then nothing
    /// keeps it.
    GiveUp(ShownSeat),
    /// A seat to one with a newer token.
    Rejoin(ShownSeat),
}

/// What connects a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The seat, by the player's token.
    pub seat: ShownSeat,
    /// This write.
    pub write: WriteId,
    /// When the connected seat lapses, where it was reserved.
    pub until: Timestamp,
}

impl Connect {
    /// Of the first token of a seat, at `now`.
    #[must_use]
    pub fn first(seat_id: SeatId, write: WriteId, now: Timestamp) -> Self {
        Self { seat: ShownSeat { seat_id, generation: 0 }, write, until: now + CONNECTED_MAX }
    }
}

impl Transition {
    /// Whether a guess at the lobby's state would be wrong, so that reading it first is cheaper.
    #[must_use]
    pub fn needs_look(&self) -> bool {
        match self {
            Self::Ready | Self::Rejoin(_) => true,
            Self::Connect(Connect { seat, .. }) | Self::GiveUp(seat) => seat.generation > 0,
            Self::Disconnect(seat, keep) => seat.generation > 0 || keep.is_some_and(|keep| !keep.is_zero()),
            _ => false,
        }
    }
}

/// Whether a legal transition is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionState {
    /// It is still to be made.
    Due,
    /// It has been made: a repeated request is harmless.
    Done,
}

/// Why a transition is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// The lobby has ended, or should have become ready long ago.
    Ended,
    /// Players cannot connect before the lobby is ready.
    NotReady,
    /// A lobby of a deregistered server stays closed.
    Draining,
    /// It is of another start of its game server.
    OtherStart,
    /// The player connected before.
    AlreadyConnected,
    /// The reservation lapsed.
    ReservationLapsed,
    /// The player left the seat.
    SeatLeft,
    /// Only a later release knows the lobby's stage. A retry may reach that release.
    StageUnknown,
}

impl From<Illegal> for Error {
    fn from(illegal: Illegal) -> Self {
        match illegal {
            Illegal::Ended => Self::LobbyStopped,
            Illegal::NotReady => Self::LobbyStateConflict("it is not ready yet"),
            Illegal::Draining => Self::LobbyStateConflict("its game server deregistered, so it stays closed"),
            Illegal::OtherStart => Self::LobbyStateConflict("it is of another start of its game server"),
            Illegal::AlreadyConnected => Self::PlayerAlreadyConnected(None),
            Illegal::ReservationLapsed => Self::PlayerRegistrationExpired,
            Illegal::SeatLeft => Self::PlayerRemoved,
            Illegal::StageUnknown => Self::Contention,
        }
    }
}

impl Lobby {
    /// Whether `transition` is due or done at `now`.
    ///
    /// # Errors
    /// [`Illegal`] when the lobby's state does not allow it.
    pub fn check(&self, transition: &Transition, now: Timestamp) -> Result<TransitionState, Illegal> {
        let due = |is_due| if is_due { TransitionState::Due } else { TransitionState::Done };
        // A player who left before the end may leave again. Every other transition of an ended lobby is
        // illegal.
        let has_left = match transition {
            Transition::Leave(seat) => !self.has_seat(seat),
            Transition::Disconnect(seat, _) => !self.is_released_by(seat) && !self.is_spent_by(seat),
            Transition::GiveUp(seat) => !self.is_given_up_by(seat),
            _ => false,
        };
        if has_left {
            return Ok(TransitionState::Done);
        }
        if self.is_over(now) {
            return Err(Illegal::Ended);
        }
        if self.stage == Stage::Unknown {
            return Err(Illegal::StageUnknown);
        }
        match transition {
            Transition::Ready => Ok(due(self.stage == Stage::Starting)),
            Transition::Close => Ok(due(!self.closed)),
            Transition::Reopen if self.is_draining => Err(Illegal::Draining),
            Transition::Reopen => Ok(due(self.closed)),
            Transition::MakePrivate => Ok(due(!self.is_private)),
            Transition::MakePublic => Ok(due(self.is_private)),
            Transition::Drain(start) if self.start.is_some() && self.start != *start => {
                Err(Illegal::OtherStart)
            }
            Transition::Drain(_) => Ok(due(!self.is_draining)),
            Transition::Connect(connect) => self.check_connect(connect, now),
            Transition::Rejoin(seat) => self.check_rejoin(seat, now),
            Transition::Leave(_) | Transition::Disconnect(..) | Transition::GiveUp(_) => {
                Ok(TransitionState::Due)
            }
        }
    }

    /// The connected seats, each by the token that connected.
    #[must_use]
    pub fn connected_by_token(&self) -> Vec<ShownSeat> {
        let shown = |seat_id: &SeatId| ShownSeat {
            seat_id: seat_id.clone(),
            generation: self.tokens(seat_id).connected,
        };
        self.connected.keys().map(shown).collect()
    }

    /// The tokens of a seat that is taken; of one that has had one token alone, as if that had connected.
    #[must_use]
    pub fn tokens(&self, seat_id: &SeatId) -> Generations {
        self.generations_of(seat_id).unwrap_or(Generations::FIRST)
    }

    /// Whether the newest token of a seat that is taken has not connected yet, and still may.
    fn is_awaited(&self, seat_id: &SeatId) -> bool {
        self.generations_of(seat_id)
            .map_or_else(|| self.reserved.contains_key(seat_id), Generations::is_awaited)
    }

    /// Whether a disconnect with this token concerns the seat: while it is connected, by this very token, or
    /// while the player of its first token has not connected.
    #[must_use]
    pub fn is_released_by(&self, ShownSeat { seat_id, generation }: &ShownSeat) -> bool {
        let is_first = || self.generations_of(seat_id).is_none();
        *generation == self.tokens(seat_id).connected
            && (self.connected.contains_key(seat_id) || self.reserved.contains_key(seat_id) && is_first())
    }

    /// Whether a disconnect with this token comes before its connect: a player who came back has lost that
    /// connection already.
    #[must_use]
    pub fn is_spent_by(&self, ShownSeat { seat_id, generation }: &ShownSeat) -> bool {
        let is_newest = |tokens: Generations| tokens.is_awaited() && *generation == tokens.newest;
        self.has_seat(seat_id) && self.generations_of(seat_id).is_some_and(is_newest)
    }

    /// Whether a player who leaves with this token changes the seat: not with an older token than the newest,
    /// nor while connected where no seat is kept.
    fn is_given_up_by(&self, ShownSeat { seat_id, generation }: &ShownSeat) -> bool {
        let tokens = self.tokens(seat_id);
        let may_be_kept = self.keep_secs > 0 || self.generations.is_some();
        let is_connected = || self.connected.contains_key(seat_id) && may_be_kept && !tokens.is_leaving;
        *generation == tokens.newest && (self.reserved.contains_key(seat_id) || is_connected())
    }

    /// Until when a connected seat is kept from `now` on for a player who disconnected, if it is: for `keep`
    /// where the server gave one, and longer where a newer token waits.
    #[must_use]
    pub fn kept_until(&self, seat_id: &SeatId, keep: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
        let connected_until = *self.connected.get(seat_id)?;
        let tokens = self.tokens(seat_id);
        let keep = keep.unwrap_or_else(|| self.keep());
        let keep = if tokens.is_awaited() { keep.max(self.reservation()) } else { keep };
        let until = connected_until.min(now + keep);
        (until > now && !tokens.is_leaving).then_some(until)
    }

    fn check_connect(&self, connect: &Connect, now: Timestamp) -> Result<TransitionState, Illegal> {
        let Connect { seat: ShownSeat { seat_id, generation }, write, until } = connect;
        let (connected, reserved) = (self.connected.get(seat_id), self.reserved.get(seat_id));
        let Some(held_until) = connected.or(reserved) else { return Err(self.gone(seat_id)) };
        if *generation != self.tokens(seat_id).newest {
            return Err(Illegal::SeatLeft);
        }
        if !self.is_awaited(seat_id) {
            // An earlier attempt of this very write succeeded, but its response was lost.
            return match connected {
                Some(_) if self.connected_by.as_ref() == Some(write) => Ok(TransitionState::Done),
                Some(_) if *generation == self.tokens(seat_id).connected => Err(Illegal::AlreadyConnected),
                _ => Err(Illegal::SeatLeft),
            };
        }
        if self.stage == Stage::Starting {
            return Err(Illegal::NotReady);
        }
        let is_held = *held_until > now && *until > now;
        if is_held { Ok(TransitionState::Due) } else { Err(Illegal::ReservationLapsed) }
    }

    fn check_rejoin(&self, seat: &ShownSeat, now: Timestamp) -> Result<TransitionState, Illegal> {
        let ShownSeat { seat_id, generation } = seat;
        match self.seat_state(seat_id, now) {
            SeatState::Held if *generation > self.tokens(seat_id).newest => Err(Illegal::SeatLeft),
            SeatState::Held if self.is_awaited(seat_id) => Ok(TransitionState::Done),
            SeatState::Held => Ok(TransitionState::Due),
            SeatState::Gone => Err(Illegal::ReservationLapsed),
            SeatState::Unknown => Err(Illegal::SeatLeft),
        }
    }

    /// Why a seat that is not taken cannot be connected.
    fn gone(&self, seat_id: &SeatId) -> Illegal {
        if self.lapsed.contains(seat_id) { Illegal::ReservationLapsed } else { Illegal::SeatLeft }
    }
}

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
//! | connect | ready; seat reserved | connected, for 8 h at most | starting: conflict; else its code |
//! | leave | seat reserved or connected | free | no such seat: harmless |
//! | give up | seat reserved | free | seat connected, or no such seat: harmless |
//! | extend the lease | starting, ready | a later lease, in sight again | ended: nothing |
//! | end | starting, ready; cause holds | ended, readable for a day | ended: harmless; no cause: nothing |
//!
//! Finds take seats in open lobbies, joins in any. A draining lobby ends when it is empty, or when its server
//! sends no more heartbeats. Every other call on an ended lobby is `MATCHMAKER_LOBBY_STOPPED`.
//!
//! The first write assumes the usual state of a lobby. A refused write returns the lobby. Then an illegal
//! transition gets its code, one that was made before is harmless, and one that is due is retried with the
//! state returned.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{SeatId, StartMark, WriteId},
        lobby::{Lobby, Stage},
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
    /// A reserved seat to a connected one, by this write.
    Connect(SeatId, WriteId),
    /// A reserved or connected seat to a free one.
    Leave(SeatId),
    /// A reserved seat to a free one, by its player. A connected seat is its server's to free.
    GiveUp(SeatId),
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
            Transition::GiveUp(seat) => !self.reserved.contains_key(seat),
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
            Transition::Connect(seat, write) => self.check_connect(seat, write, now),
            Transition::Leave(_) | Transition::GiveUp(_) => Ok(TransitionState::Due),
        }
    }

    fn check_connect(
        &self,
        seat: &SeatId,
        write: &WriteId,
        now: Timestamp,
    ) -> Result<TransitionState, Illegal> {
        if self.connected.contains_key(seat) {
            // An earlier attempt of this very write succeeded, but its response was lost.
            let is_own = self.connected_by.as_ref() == Some(write);
            return if is_own { Ok(TransitionState::Done) } else { Err(Illegal::AlreadyConnected) };
        }
        match self.reserved.get(seat) {
            Some(_) if self.stage == Stage::Starting => Err(Illegal::NotReady),
            Some(until) if *until > now => Ok(TransitionState::Due),
            Some(_) => Err(Illegal::ReservationLapsed),
            None if self.lapsed.contains(seat) => Err(Illegal::ReservationLapsed),
            None => Err(Illegal::SeatLeft),
        }
    }
}

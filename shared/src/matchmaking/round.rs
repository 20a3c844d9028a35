//! Whom a find meets in one round of creation.

use std::time::Duration;

use crate::{
    base::{ambient::Timestamp, pauses::Pauses},
    models::ids::LobbyId,
};

/// How long a find waits for the lobby that another find of its burst is creating: first about as long as its
/// transaction takes.
const CREATOR_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(16));
/// The same for a find that lost a seat while it waited: it looks for the next one at once, then after this.
const CREATOR_PAUSES_AFTER_LOSS: Pauses = Pauses::doubling(Duration::from_millis(15));
/// Waits for that lobby before the find creates it itself: the creator may have crashed.
const CREATOR_WAITS: u32 = 4;
/// The same where the creator may have to request a server first, among many that do.
const REQUESTER_WAITS: u32 = 7;

/// What a find knows of the others in its round of creation.
#[derive(Debug)]
pub(super) struct Round {
    /// Whether other finds may have created lobbies since the find looked.
    is_contended: bool,
    /// Whether the find lost a seat, in this round or in an earlier one.
    has_lost: bool,
    /// The lobby of a burst that it found full in this round.
    lost: Option<LobbyId>,
    /// When the index, read to its end a moment ago, showed no server with a place.
    pub(super) without_server_at: Option<Timestamp>,
    /// How long its last election took.
    pub(super) election_took: Duration,
}

impl Round {
    /// The first round of a find, or one after `has_lost` a seat in the round before.
    pub(super) const fn new(has_lost: bool) -> Self {
        Self {
            is_contended: has_lost,
            has_lost,
            lost: None,
            without_server_at: None,
            election_took: Duration::ZERO,
        }
    }

    /// Notes that another find began a burst first.
    pub(super) const fn lose_election(&mut self) {
        self.is_contended = true;
    }

    /// Notes that the burst's lobby `lobby_id` was full; returns whether it is the round's first one.
    pub(super) fn lose_seat(&mut self, lobby_id: &LobbyId) -> bool {
        self.has_lost = true;
        self.lost.replace(lobby_id.clone()).is_none()
    }

    /// Whether the find already found the burst's lobby `lobby_id` full.
    pub(super) fn has_lost_in(&self, lobby_id: &LobbyId) -> bool {
        self.lost.as_ref() == Some(lobby_id)
    }

    /// Whether another find may have left a seat for this one, so that the burst's `nth` lobby, counted from
    /// 0, may be a needless one. All seats before a later lobby are promised, unless the find drew it after a
    /// loss, when another find may have got a seat meanwhile.
    pub(super) const fn may_be_needless(&self, nth: u32) -> bool {
        self.is_contended && (nth == 0 || self.has_lost)
    }

    /// How often the find tries a lobby that is not there yet before it creates it, where its creator
    /// `may_request` a server.
    pub(super) const fn waits(&self, may_request: bool) -> u32 {
        match self.without_server_at {
            _ if may_request => REQUESTER_WAITS,
            // The creator most likely gave up.
            Some(_) => 1,
            None => CREATOR_WAITS,
        }
    }

    /// The pause before the find tries the lobby for the `wait`-th time, counted from 0.
    pub(super) fn pause(&self, wait: u32) -> Duration {
        match wait.checked_sub(1) {
            _ if !self.has_lost => CREATOR_PAUSES.nth(wait),
            None => Duration::ZERO,
            Some(before) => CREATOR_PAUSES_AFTER_LOSS.nth(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_find_that_lost_a_seat_looks_at_once_and_counts_its_lobby() {
        let mut round = Round::new(false);
        assert_eq!((round.pause(0), round.may_be_needless(0)), (CREATOR_PAUSES.nth(0), false));
        round.lose_election();
        assert_eq!((round.may_be_needless(0), round.may_be_needless(1)), (true, false));
        assert!(round.lose_seat(&LobbyId::nil()) && !round.lose_seat(&LobbyId::nil()));
        assert!(round.has_lost_in(&LobbyId::nil()) && round.may_be_needless(1));
        assert_eq!([0, 1].map(|wait| round.pause(wait)), [Duration::ZERO, CREATOR_PAUSES_AFTER_LOSS.nth(0)]);
        round.without_server_at = Some(Timestamp::default());
        assert_eq!(
            (round.waits(true), round.waits(false)),
            (REQUESTER_WAITS, 1),
            "a server may be requested"
        );
        let later = Round::new(true);
        assert!(later.may_be_needless(1) && !later.has_lost_in(&LobbyId::nil()));
    }
}

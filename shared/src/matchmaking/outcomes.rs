//! Results of a round of creation.

use std::time::Duration;

pub(super) use crate::rules::capacity::NoCapacity;
use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, lobby_code::LobbyCode, pool::Pool, shortage::Shortage},
    request::trace::Trace,
    seating::reply::Found,
    store::creation::Burst,
};

/// The result of a round of creation.
pub(super) enum Step {
    /// A seat.
    Found(Box<Found>),
    /// Others were quicker, and their lobbies may be joinable by now.
    LookAgain,
    /// There is no capacity for another lobby, and none could be freed.
    NoCapacity(NoCapacity),
}

/// The refusal of a find for want of capacity, with the game servers that the last search for it read.
pub(super) fn refusal(reason: NoCapacity, wanted: &Pool, trace: &Trace) -> Error {
    match reason {
        NoCapacity::AtCap => Error::TooManyLobbies,
        NoCapacity::NoServer => Error::NoServerAvailable(trace.obstacles().map(|servers| {
            let Pool { game_mode, region_id, .. } = wanted.clone();
            Shortage { game_mode, region_id, servers }
        })),
    }
}

/// Where a lobby is placed, and when it comes into sight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placing {
    /// How many lobbies precede it at the same time: each goes to another server.
    pub(super) nth: u64,
    /// How long it stays out of sight of the index.
    pub(super) sight_after: Duration,
    /// When the index, read to its end a moment ago, showed no server with a place: the first choice reads it
    /// no second time.
    pub(super) without_server_at: Option<Timestamp>,
}

impl Placing {
    /// Whether the lobby is hidden for the finds that drew its positions, not because this instance alone
    /// fills it.
    pub(super) const fn is_promised(self) -> bool {
        self.nth > 0 && !self.sight_after.is_zero()
    }
}

/// What entitles a find to create a lobby.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// Nothing but its need: no other find waits for the lobby.
    Alone,
    /// A player's request for a lobby of their own, which gets this code.
    Custom(&'a LobbyCode),
    /// A position of a burst. While the burst is young, nobody replaces it before its lobbies are full.
    Has {
        burst: &'a Burst,
        /// Whether another find may have left a seat meanwhile, so that the lobby may be a needless one.
        may_be_needless: bool,
    },
}

/// The result of one attempt to create one lobby.
pub(super) enum Attempt {
    Created(Box<Found>),
    Exists,
    /// Another burst has replaced the find's.
    Replaced(Burst),
    Lost,
    NoCapacity(NoCapacity),
}

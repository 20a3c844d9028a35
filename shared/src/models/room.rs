//! The order of lobbies with room for parties.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::ambient::Timestamp;

/// A lobby's place in the index of lobbies with room for parties: those with the least room come first, of
/// equals the older. As a number, 10^14 times the seats that are free for the largest party, plus the time
/// of its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Room(u64);

impl Room {
    /// More than any time has milliseconds, until the year 5138.
    const STEP: u64 = 100_000_000_000_000;
    /// The smallest party.
    pub(super) const SEATS_MIN: u32 = 2;

    /// The place of a lobby with so many `seats` free.
    pub(super) fn new(seats: u32, created_at: Timestamp) -> Self {
        Self(u64::from(seats).saturating_mul(Self::STEP).saturating_add(created_at.0))
    }

    /// The first place of lobbies with room for so many.
    #[must_use]
    pub fn of(seats: u32) -> Self {
        Self::new(seats, Timestamp::default())
    }

    /// When the lobby was created.
    #[must_use]
    pub const fn created_at(self) -> Timestamp {
        Timestamp(self.0 % Self::STEP)
    }

    /// Seats that were free.
    #[must_use]
    pub fn seats(self) -> u32 {
        u32::try_from(self.0.checked_div(Self::STEP).unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

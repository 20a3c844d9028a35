//! Seats that one request takes together.

use crate::models::ids::SeatId;

/// Seats of one lobby that one request takes together, all or none. The first names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    first: SeatId,
    count: u32,
}

impl Seats {
    /// One seat.
    #[must_use]
    pub const fn one(first: SeatId) -> Self {
        Self { first, count: 1 }
    }

    /// The first.
    #[must_use]
    pub const fn first(&self) -> &SeatId {
        &self.first
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }
}

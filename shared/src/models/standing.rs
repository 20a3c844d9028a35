//! What a namespace knows of a client: whether its players connect (decision 65).

use std::time::Duration;

/// Seats that a client of whom nobody has connected yet may hold at a time while lobbies run short. Two, so
/// that the second player behind an address need not wait for the first.
pub const UNPROVEN_SEATS_MAX: u32 = 2;
/// The same for one whose last reservations nobody used.
pub const SUSPECT_SEATS_MAX: u32 = 1;
/// Strikes from which on a seat waits for [`SHORT_RESERVATION`] only: one is anybody's, whose lobby ended
/// first.
const TRIAL_STRIKES: u32 = 2;
/// How long a seat waits for a player of such a client while lobbies run short.
pub const SHORT_RESERVATION: Duration = Duration::from_secs(10);
/// The most doubt of a client for which a lobby that nobody has connected to makes room: its own.
const DOUBT_OF_A_FRESH_CLIENT: u32 = 1;

/// What became of a client's last reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether one of its players has connected since it was last unknown.
    pub is_proven: bool,
    /// Reservations that lapsed, or ended with their lobby, before their player connected.
    pub strikes: u32,
}

impl Standing {
    /// How little speaks for the client, which holds `held` seats: 0 when one of its players has connected;
    /// else one, and one for each strike and each seat.
    #[must_use]
    pub const fn doubt(self, held: u32) -> u32 {
        if self.is_proven {
            0
        } else {
            DOUBT_OF_A_FRESH_CLIENT.saturating_add(self.strikes).saturating_add(held)
        }
    }

    /// Whether its seats are for a short time while lobbies run short.
    #[must_use]
    pub const fn is_on_trial(self) -> bool {
        !self.is_proven && self.strikes >= TRIAL_STRIKES
    }

    /// Seats that the client may hold while lobbies run short, if its namespace lets each hold `limit`.
    #[must_use]
    pub fn seats_max(self, limit: u32) -> u32 {
        match self {
            Self { is_proven: true, .. } => limit,
            Self { strikes: 0, .. } => limit.min(UNPROVEN_SEATS_MAX),
            Self { .. } => limit.min(SUSPECT_SEATS_MAX),
        }
    }
}

/// Whether a client with so much doubt may take the place of a lobby that nobody has connected to.
#[must_use]
pub const fn may_displace(doubt: u32) -> bool {
    doubt <= DOUBT_OF_A_FRESH_CLIENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_doubted_until_one_of_its_players_connects() {
        let (fresh, suspect) = (Standing::default(), Standing { strikes: 3, ..Standing::default() });
        assert_eq!((fresh.doubt(0), fresh.doubt(2), suspect.doubt(1)), (1, 3, 5));
        assert_eq!((fresh.seats_max(8), suspect.seats_max(8), fresh.seats_max(1)), (2, 1, 1));
        let proven = Standing { is_proven: true, strikes: 3 };
        assert_eq!((proven.doubt(7), proven.seats_max(8)), (0, 8));
        assert_eq!([0, 1, 2].map(may_displace), [true, true, false]);
    }
}

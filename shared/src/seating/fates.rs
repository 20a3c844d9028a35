//! What became of a client's holds, and which of them a new one replaces.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    base::ambient::Timestamp,
    models::{
        ids::LobbyId,
        lobby::{Lobby, SeatState},
    },
    store::holds::{Hold, REPLACED_MAX},
};

/// A hold of this age whose seat is not in its lobby is stale: its request has ended.
const PENDING_MAX: Duration = Duration::from_secs(30);

/// Whether a client with so many `holds` may not hold so many `seats` more.
pub(super) fn is_at_cap(holds: usize, seats: u32, holds_max: u32) -> bool {
    u32::try_from(holds).is_ok_and(|holds| holds.saturating_add(seats) > holds_max)
}

pub(super) fn lobbies_of(holds: &[Hold]) -> Vec<LobbyId> {
    holds.iter().map(|hold| hold.lobby_id.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What became of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its player connected, and may be there or come back.
    Connected,
    /// It stands for a seat that waits for its player, or its request may be about to take one.
    Waits,
    /// Its player connected, and its seat is gone.
    Left,
    /// Its seat is gone, and its player had not connected.
    Unused,
    /// Its request never took a seat, or its player left.
    Void,
}

impl Fate {
    pub(super) const fn stands(self) -> bool {
        matches!(self, Self::Connected | Self::Waits)
    }

    pub(super) const fn proves(self) -> bool {
        matches!(self, Self::Connected | Self::Left)
    }
}

/// What became of a hold until `now`, as far as `lobbies` show.
pub(super) fn fate(hold: &Hold, lobbies: &[Lobby], now: Timestamp) -> Fate {
    let lobby = lobbies.iter().find(|lobby| lobby.lobby_id == hold.lobby_id);
    let has_connected = lobby.is_some_and(|lobby| lobby.has_connected(&hold.seat_id));
    match lobby.map_or(SeatState::Unknown, |lobby| lobby.seat_state(&hold.seat_id, now)) {
        SeatState::Held if has_connected => Fate::Connected,
        SeatState::Held => Fate::Waits,
        SeatState::Gone if has_connected => Fate::Left,
        SeatState::Gone => Fate::Unused,
        // Its request may be about to take the seat, there or in another lobby.
        SeatState::Unknown if now.since(hold.since) < PENDING_MAX => Fate::Waits,
        SeatState::Unknown => Fate::Void,
    }
}

/// The stale holds to remove for more holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Holds that the new one's write replaces.
    pub(super) replaced: Vec<Hold>,
    /// Holds that are withdrawn first.
    pub(super) withdrawn: Vec<Hold>,
}

/// Which `idle` ones of `count` holds to remove so that as many more as `seats` stay within `holds_max`;
/// `None` when too many have seats.
///
/// After the limit was lowered, one write may not replace enough, and others are withdrawn: only as many as
/// needed, and not all in one try, since each costs a write of the client's whole item.
pub(super) fn plan(count: usize, seats: u32, mut idle: Vec<Hold>, holds_max: u32) -> Option<Plan> {
    if is_at_cap(count - idle.len(), seats, holds_max) {
        return None;
    }
    let surplus = idle.split_off(idle.len().min(REPLACED_MAX));
    let wanted = u32::try_from(count - idle.len()).unwrap_or(u32::MAX).saturating_add(seats);
    let excess = usize::try_from(wanted.saturating_sub(holds_max)).unwrap_or(usize::MAX);
    let withdrawn = surplus.into_iter().take(excess.min(REPLACED_MAX)).collect();
    Some(Plan { replaced: idle, withdrawn })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::ambient::Ambient, models::ids::SeatId};

    /// How many holds are replaced and how many withdrawn.
    fn planned(count: usize, idle: usize, holds_max: u32) -> Option<(usize, usize)> {
        planned_for(1, count, idle, holds_max)
    }

    fn planned_for(seats: u32, count: usize, idle: usize, holds_max: u32) -> Option<(usize, usize)> {
        let (lobby_id, ambient) = (LobbyId::nil(), Ambient::system());
        let hold = |_| Hold {
            seat_id: SeatId::from(ambient.uuid()),
            lobby_id: lobby_id.clone(),
            since: Timestamp::default(),
        };
        let plan = plan(count, seats, (0..idle).map(hold).collect(), holds_max)?;
        Some((plan.replaced.len(), plan.withdrawn.len()))
    }

    #[test]
    fn holds_that_stand_for_seats_stay() {
        assert_eq!(planned(8, 0, 8), None);
        assert_eq!(planned(9, 1, 8), None);
        assert_eq!(planned(8, 1, 8), Some((1, 0)));
    }

    #[test]
    fn a_party_stays_within_the_limit_with_all_its_seats() {
        assert_eq!([planned_for(4, 4, 0, 8), planned_for(4, 5, 0, 8)], [Some((0, 0)), None]);
        assert_eq!(planned_for(4, 8, 3, 8), None);
        assert_eq!(planned_for(4, 8, 4, 8), Some((4, 0)));
    }

    #[test]
    fn idle_holds_beyond_one_write_go_where_the_limit_was_higher() {
        let most = REPLACED_MAX;
        assert_eq!(planned(most + 10, most + 10, 8), Some((most, 3)));
        assert_eq!(planned(3 * most, 3 * most, 1), Some((most, most)));
        assert_eq!(planned(most + 10, most + 10, 100_000), Some((most, 0)));
        assert_eq!(planned_for(4, most + 10, most + 10, 8), Some((most, 6)));
    }
}

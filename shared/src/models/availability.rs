//! Whether a request can take seats in a lobby, and which lobby it prefers.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    models::{ids::SeatId, lobby::Lobby, pool::Pool, room::Room, tag_digests::TagDigests},
};

/// How a player enters a lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a find, in this pool and with these tags: up to the normal capacity, if finds may see the lobby.
    Find(Pool, TagDigests),
    /// By its identifier or code: up to the direct capacity, closed and private or not.
    Direct,
}

/// Why a request cannot take a seat in a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such lobby.
    Missing,
    /// It has ended, or never became ready.
    Ended,
    /// It is closed or private, or only a later release knows its stage or ports.
    Hidden,
    /// Its server's lease has lapsed.
    LeaseLapsed,
    /// It is in another pool.
    OtherPool,
    /// It lacks a queried tag.
    TagMissing,
    /// The request wants no seat there, or a player of its client was removed from it.
    Excluded,
    /// All its seats are held.
    Full,
    /// Seats are free, but fewer than the party has players.
    TooFull,
}

impl Refusal {
    /// Whether it lacks seats.
    #[must_use]
    pub const fn is_for_want_of_seats(self) -> bool {
        matches!(self, Self::Full | Self::TooFull)
    }
}

/// Whether a request can take a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// So many seats are free.
    Free(u32),
    /// No seat is free, but these have lapsed and can be taken over.
    TakeOver(Vec<SeatId>),
    /// No seat can be taken.
    Refused(Refusal),
}

/// The most lapsed seats that one write takes over: each takes 33 bytes of its condition, which may have 4
/// KB, and two of its 300 operators.
const TAKE_OVER_MAX: usize = 90;
/// Seats by which a lobby's item grows by one write unit.
const SEATS_PER_UNIT: u32 = 30;
/// Write units of finds in a second from which a lobby is crowded: its item takes 1,000, and its players also
/// connect.
const CROWDED_UNITS: usize = 700;

impl Lobby {
    /// Whether a request with `access` can take `seats` here at `now`, all or none.
    #[must_use]
    pub fn availability(&self, access: &Access, seats: u32, now: Timestamp) -> Availability {
        if self.is_over(now) {
            return Availability::Refused(Refusal::Ended);
        }
        if !self.is_understood() {
            return Availability::Refused(Refusal::Hidden);
        }
        if let Access::Find(pool, tags) = access {
            if self.pool != *pool {
                return Availability::Refused(Refusal::OtherPool);
            }
            if !self.tag_digests.contain(tags) {
                return Availability::Refused(Refusal::TagMissing);
            }
            if self.joinable_from.is_none() || self.closed {
                return Availability::Refused(Refusal::Hidden);
            }
        }
        if self.lease_until <= now {
            return Availability::Refused(Refusal::LeaseLapsed);
        }
        let capacity = self.capacity(access, seats);
        let free = capacity.saturating_sub(self.taken);
        if free >= seats {
            return Availability::Free(free);
        }
        let mut lapsed: Vec<SeatId> = self.lapsed_seats(now).cloned().collect();
        lapsed.truncate(TAKE_OVER_MAX);
        // Joins may have filled it beyond the capacity for finds: then one lapsed seat does not make a free
        // one.
        let held = self.taken.saturating_sub(u32::try_from(lapsed.len()).unwrap_or(u32::MAX));
        match capacity.saturating_sub(held) {
            left if left >= seats => Availability::TakeOver(lapsed),
            0 => Availability::Refused(Refusal::Full),
            _ => Availability::Refused(Refusal::TooFull),
        }
    }

    /// Whether a find in its pool without tags can take `seats` here at `now`.
    #[must_use]
    pub fn availability_for_find(&self, seats: u32, now: Timestamp) -> Availability {
        self.availability(&Access::Find(self.pool.clone(), TagDigests::default()), seats, now)
    }

    /// The lobby's capacity for `seats` taken together with `access`.
    #[must_use]
    pub fn capacity(&self, access: &Access, seats: u32) -> u32 {
        let of_door = match access {
            Access::Find(..) => self.max_players,
            Access::Direct => self.max_players_direct,
        };
        of_door.max(self.capacity_for_finds(seats))
    }

    /// The same for finds.
    #[must_use]
    pub fn capacity_for_finds(&self, seats: u32) -> u32 {
        self.max_players_party
            .filter(|_| seats > 1)
            .map_or(self.max_players, |party| party.max(self.max_players))
    }

    /// Its place at `now` in the index of lobbies with room for parties, if it has one there.
    #[must_use]
    pub fn room_at(&self, now: Timestamp) -> Option<Room> {
        let held = u32::try_from(self.held_seats(now)).unwrap_or(u32::MAX);
        self.room_with(held).filter(|_| !self.is_over(now))
    }

    /// The same once `held` of its seats are.
    #[must_use]
    pub fn room_with(&self, held: u32) -> Option<Room> {
        let largest = self.party_size_max?;
        let is_in_sight = self.joinable_from.is_some_and(|from| from != Timestamp::NEVER);
        let free = self.capacity_for_finds(largest).saturating_sub(held).min(largest);
        (is_in_sight && free >= Room::SEATS_MIN).then(|| Room::new(free, self.created_at))
    }

    /// Whether finds take seats here about as fast as one item's writes allow: a reservation shows when it
    /// was made, so the lobby as it was read at `seen_at` shows those of the last second.
    #[must_use]
    pub fn is_crowded(&self, seen_at: Timestamp) -> bool {
        let made_before = (seen_at + self.reservation()).before(Duration::from_secs(1));
        let is_made =
            |(seat, lapse): &(&SeatId, &Timestamp)| **lapse > made_before && !self.has_connected(seat);
        let made = self.reserved.iter().filter(is_made).count();
        let units_each = 1 + self.taken / SEATS_PER_UNIT;
        made.saturating_mul(units_each as usize) >= CROWDED_UNITS
    }
}

/// Sorts the fullest lobby first, and the older of equally full ones (decision 10).
pub fn sort_fullest_first(lobbies: &mut [Lobby], now: Timestamp) {
    lobbies.sort_by_cached_key(|lobby| (lobby.free_seats(now), lobby.created_at, lobby.lobby_id.clone()));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{
        base::ambient::Ambient,
        models::{
            lobby::{EndCause, STARTING_MAX, SeatState, Stage},
            tag_digests::TagKey,
        },
    };

    const NOW: Timestamp = Timestamp(1_000_000);

    fn lobby(max_players: u32, lapses: &[u64]) -> Lobby {
        let seats = lapses.iter().map(|until| (SeatId::random(&Ambient::system()), Timestamp(*until)));
        let lobby = json!({
            "lobby_id": Ambient::system().uuid(), "pool": "ns/v/arena/eu", "joinable_from": 5, "created_at": 5,
            "stage": "ready", "closed": false, "server": "ns/s", "lease_until": Timestamp::NEVER, "ports": {},
            "max_players": max_players, "max_players_direct": max_players, "reservation_secs": 120,
            "taken": lapses.len(), "reserved": seats.collect::<BTreeMap<_, _>>(), "connected": {},
        });
        serde_json::from_value(lobby).unwrap()
    }

    fn availability(lobby: &Lobby) -> Availability {
        lobby.availability_for_find(1, NOW)
    }

    #[test]
    fn a_lapsed_seat_is_free_from_its_expiry_and_not_before() {
        assert_eq!(availability(&lobby(1, &[NOW.0 + 1])), Availability::Refused(Refusal::Full));
        assert!(
            matches!(availability(&lobby(1, &[NOW.0])), Availability::TakeOver(seats) if seats.len() == 1)
        );
        assert_eq!(availability(&lobby(2, &[NOW.0])), Availability::Free(1));
    }

    #[test]
    fn a_lobby_filled_directly_beyond_its_size_needs_enough_lapsed_seats() {
        let held = NOW.0 + 1;
        assert_eq!(availability(&lobby(2, &[held, held, NOW.0])), Availability::Refused(Refusal::Full));
        assert!(
            matches!(availability(&lobby(2, &[held, NOW.0, NOW.0])), Availability::TakeOver(seats) if seats.len() == 2)
        );
    }

    #[test]
    fn hidden_ended_dead_and_foreign_lobbies_are_refused() {
        let open = lobby(2, &[]);
        let cases = [
            (Lobby { stage: Stage::Ended, ..open.clone() }, Refusal::Ended),
            (Lobby { closed: true, ..open.clone() }, Refusal::Hidden),
            (Lobby { joinable_from: None, ..open.clone() }, Refusal::Hidden),
            (Lobby { lease_until: NOW, ..open.clone() }, Refusal::LeaseLapsed),
        ];
        for (lobby, refusal) in cases {
            assert_eq!(availability(&lobby), Availability::Refused(refusal));
        }
        let other = "ns/v2/arena/eu".parse().unwrap();
        let access = Access::Find(other, TagDigests::default());
        assert_eq!(open.availability(&access, 1, NOW), Availability::Refused(Refusal::OtherPool));
        let tags = [("map".to_owned(), "dust".to_owned())].into();
        let access =
            Access::Find(open.pool.clone(), TagDigests::of(&tags, &TagKey::random(&Ambient::system())));
        assert_eq!(open.availability(&access, 1, NOW), Availability::Refused(Refusal::TagMissing));
    }

    #[test]
    fn a_party_is_seated_wholly_or_refused_as_too_many() {
        let held = NOW.0 + 1;
        let party = |lobby: &Lobby, seats| lobby.availability_for_find(seats, NOW);
        let lobby = |lapses: &[u64]| Lobby {
            max_players_party: Some(4),
            party_size_max: Some(3),
            ..lobby(4, lapses)
        };
        assert_eq!(party(&lobby(&[held]), 3), Availability::Free(3));
        assert_eq!(party(&lobby(&[held; 2]), 3), Availability::Refused(Refusal::TooFull));
        assert_eq!(party(&lobby(&[held; 4]), 2), Availability::Refused(Refusal::Full));
        assert!(
            matches!(party(&lobby(&[held, held, NOW.0]), 2), Availability::TakeOver(seats) if seats.len() == 1)
        );
        let wider = Lobby { max_players_party: Some(5), ..lobby(&[held; 3]) };
        assert_eq!((party(&wider, 2), party(&wider, 1)), (Availability::Free(2), Availability::Free(1)));
        let rooms = [0, 1, 2, 3, 4].map(|held| lobby(&[]).room_with(held).map(Room::seats));
        assert_eq!(rooms, [Some(3), Some(3), Some(2), None, None]);
        let roomy = lobby(&[held, NOW.0, NOW.0]);
        assert_eq!(roomy.room_at(NOW).map(Room::seats), Some(3), "seats that lapsed are room");
        assert!(roomy.room_at(NOW) > Lobby { created_at: Timestamp(4), ..roomy.clone() }.room_at(NOW));
        assert!(roomy.room_at(NOW) >= Some(Room::of(3)) && roomy.room_at(NOW) < Some(Room::of(4)));
        assert_eq!(Lobby { joinable_from: None, ..roomy }.room_at(NOW), None);
        assert_eq!(Lobby { party_size_max: None, ..lobby(&[]) }.room_at(NOW), None);
    }

    #[test]
    fn the_fullest_comes_first_and_the_older_of_equals() {
        let older = Lobby { created_at: Timestamp(1), ..lobby(4, &[NOW.0 + 1]) };
        let mut lobbies = vec![
            lobby(4, &[]),
            lobby(4, &[NOW.0 + 1]),
            older,
            lobby(9, &[NOW.0 + 1; 6]),
            lobby(2, &[NOW.0 + 1]),
        ];
        sort_fullest_first(&mut lobbies, NOW);
        let free: Vec<_> = lobbies.iter().map(|lobby| (lobby.free_seats(NOW), lobby.created_at.0)).collect();
        assert_eq!(free, [(1, 5), (3, 1), (3, 5), (3, 5), (4, 5)]);
    }

    #[test]
    fn a_direct_join_fills_beyond_what_finds_may_and_enters_hidden_lobbies() {
        let held = NOW.0 + 1;
        let filled = Lobby { max_players_direct: 3, ..lobby(2, &[held, held]) };
        assert_eq!(availability(&filled), Availability::Refused(Refusal::Full));
        assert_eq!(filled.availability(&Access::Direct, 1, NOW), Availability::Free(1));
        assert_eq!(
            (filled.first_lapse(), lobby(1, &[held, held + 9]).first_lapse()),
            (Timestamp(held), Timestamp(held + 9))
        );
        let closed = Lobby { closed: true, joinable_from: None, ..filled.clone() };
        assert_eq!(closed.availability(&Access::Direct, 1, NOW), Availability::Free(1));
        let dead = Lobby { lease_until: NOW, ..filled };
        assert_eq!(dead.availability(&Access::Direct, 1, NOW), Availability::Refused(Refusal::LeaseLapsed));
    }

    #[test]
    fn nothing_lapses_while_a_lobby_starts_and_all_is_over_when_it_never_does() {
        let starting =
            Lobby { stage: Stage::Starting, created_at: Timestamp(NOW.0 - 1), ..lobby(1, &[NOW.0]) };
        assert_eq!(availability(&starting), Availability::Refused(Refusal::Full));
        assert_eq!((starting.held_seats(NOW), starting.end_cause(NOW)), (1, None));
        let deadline = starting.created_at + STARTING_MAX;
        let seat = starting.reserved.keys().next().unwrap();
        assert_eq!(starting.seat_state(seat, deadline.before(Duration::from_millis(1))), SeatState::Held);
        assert_eq!(starting.seat_state(seat, deadline), SeatState::Gone);
        assert_eq!(starting.first_lapse(), deadline);
        assert_eq!(starting.availability_for_find(1, deadline), Availability::Refused(Refusal::Ended));
        assert_eq!(starting.end_cause(deadline), Some(EndCause::NeverReady));
    }
}

//! Which lobbies a list shows.
//!
//! Anyone with a public token makes lobbies by finding seats and never connecting. Such lobbies must not hide
//! those in which people play.

use crate::{base::ambient::Timestamp, models::lobby::Lobby};

/// Lobbies to which no player has connected that a list always shows, so that a developer sees each lobby.
const UNVOUCHED_MIN: usize = 8;
/// Of `lobby_count_max`, one in so many may be such a lobby before a list hides some: the more lobbies, the
/// more of them are new at any time.
const LOBBIES_FOR_EACH_UNVOUCHED: u32 = 16;
/// When it hides some, it shows one for so many others: at most a tenth of the list.
const VOUCHED_FOR_EACH_UNVOUCHED: usize = 9;

/// Those of `lobbies` that a list shows at `now`, in the same order: each that is vouched for; of the others,
/// those in which a seat is held, and when there are many, only some: of the least doubted makers, the
/// oldest.
#[must_use]
pub fn listed(mut lobbies: Vec<Lobby>, lobby_count_max: u32, now: Timestamp) -> Vec<Lobby> {
    lobbies.retain(|lobby| lobby.is_vouched_for() || lobby.held_seats(now) > 0);
    let rank = |lobby: &Lobby| (lobby.doubt, lobby.created_at, lobby.lobby_id.clone());
    let mut unvouched: Vec<_> = lobbies.iter().filter(|lobby| !lobby.is_vouched_for()).map(rank).collect();
    let share = usize::try_from(lobby_count_max / LOBBIES_FOR_EACH_UNVOUCHED).unwrap_or(usize::MAX);
    if unvouched.len() > UNVOUCHED_MIN.max(share) {
        let vouched = lobbies.len() - unvouched.len();
        unvouched.sort_unstable();
        let first_hidden = unvouched.into_iter().nth((vouched / VOUCHED_FOR_EACH_UNVOUCHED).max(1));
        lobbies.retain(|lobby| {
            lobby.is_vouched_for() || first_hidden.as_ref().is_none_or(|first| rank(lobby) < *first)
        });
    }
    lobbies
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{base::ambient::Ambient, models::ids::WriteId};

    const NOW: Timestamp = Timestamp(1_000_000);

    fn vouched(age: u64) -> Lobby {
        let connected_by = Some(WriteId::random(&Ambient::system()));
        Lobby { connected_by, ..unvouched(age) }
    }

    /// A lobby with one held seat, `age` milliseconds old.
    fn unvouched(age: u64) -> Lobby {
        with_seats(age, json!({ "a": NOW.0 + 1 }), json!({}))
    }

    fn with_seats(age: u64, reserved: Value, connected: Value) -> Lobby {
        let lobby = json!({
            "lobby_id": Ambient::system().uuid(), "pool": "ns/v/arena/fra", "created_at": NOW.0 - age,
            "stage": "ready", "closed": false, "lease_until": Timestamp::NEVER, "ports": {}, "max_players": 4,
            "max_players_direct": 4, "reservation_secs": 120, "taken": 1, "reserved": reserved,
            "connected": connected, "doubt": 1,
        });
        serde_json::from_value(lobby).unwrap()
    }

    fn counted(lobbies: Vec<Lobby>, lobby_count_max: u32) -> (usize, usize) {
        let shown = listed(lobbies, lobby_count_max, NOW);
        let vouched = shown.iter().filter(|lobby| lobby.is_vouched_for()).count();
        (vouched, shown.len() - vouched)
    }

    fn of(count: usize, others: usize) -> Vec<Lobby> {
        (0..count).map(|_| vouched(5)).chain((0..others as u64).map(unvouched)).collect()
    }

    #[test]
    fn a_lobby_that_a_player_connected_to_is_listed_with_and_without_players() {
        let empty = Lobby { connected_by: vouched(1).connected_by, ..with_seats(1, json!({}), json!({})) };
        assert_eq!(counted(vec![empty, vouched(1)], 1), (2, 0));
    }

    #[test]
    fn a_lobby_without_a_player_so_far_is_listed_while_a_seat_in_it_is_held() {
        let lapsed = with_seats(1, json!({ "a": NOW.0 }), json!({ "b": NOW.0 }));
        let empty = with_seats(1, json!({}), json!({}));
        assert_eq!(counted(vec![unvouched(1), lapsed, empty], 128), (0, 1));
    }

    #[test]
    fn eight_lobbies_without_a_player_or_a_sixteenth_of_the_limit_are_all_listed() {
        for (lobby_count_max, shown) in [(1, 8), (128, 8), (143, 8), (160, 10), (32_767, 2_047)] {
            assert_eq!(counted(of(0, shown), lobby_count_max), (0, shown), "{lobby_count_max}");
            assert_eq!(counted(of(0, shown + 1), lobby_count_max), (0, 1), "{lobby_count_max}");
        }
    }

    #[test]
    fn in_a_storm_one_lobby_in_ten_has_no_player_so_far() {
        for (vouched, others) in [(0, 1), (9, 1), (17, 1), (18, 2), (90, 10), (900, 38)] {
            assert_eq!(counted(of(vouched, 38), 128), (vouched, others));
        }
    }

    #[test]
    fn the_oldest_are_listed_and_the_order_stays() {
        let mut lobbies = of(20, 0);
        for age in [3, 9, 1, 8, 2, 7, 5, 4, 6] {
            lobbies.insert(usize::try_from(age).unwrap(), unvouched(age));
        }
        let before: Vec<_> = lobbies.iter().map(|lobby| lobby.lobby_id.clone()).collect();
        let shown = listed(lobbies, 128, NOW);
        let ages =
            shown.iter().filter(|lobby| !lobby.is_vouched_for()).map(|lobby| NOW.0 - lobby.created_at.0);
        assert_eq!(std::collections::BTreeSet::from_iter(ages), [8, 9].into());
        let places = shown.iter().map(|lobby| before.iter().position(|id| *id == lobby.lobby_id));
        assert!(places.is_sorted());
    }
}

//! Which lobby of a burst a find belongs to, and what it does there.
//!
//! Where each find draws one position, the lobby follows from the number of positions. In modes with parties
//! it is the first lobby with room for the find, after all that drew before: the head lists their positions,
//! so that every find comes to the same result.

use crate::{
    models::ids::LobbyId,
    rules::criteria::NewLobby,
    store::{creation::Burst, seats::Hiding},
};

/// What a find does about the lobby of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Creates it.
    Creator,
    /// Takes a seat there once it is created.
    Follower,
    /// Takes a seat there at once: the lobby is older than the burst.
    Guest,
}

/// The positions drawn last of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The lobby, counted from 0.
    pub(super) nth: u32,
    pub(super) lobby_id: LobbyId,
    pub(super) role: Role,
    /// Whether all positions of the lobby are drawn with them.
    pub(super) is_last: bool,
    /// Whether the lobby is hidden for the finds that draw its positions. They fill it, so a find that saw it
    /// sooner would take their seats.
    pub(super) is_promised: bool,
}

impl Position {
    pub(super) fn drawn_last(burst: &Burst, new: &NewLobby) -> Self {
        let (nth, is_first, is_last) = match &burst.draws {
            Some(draws) => {
                let lobbies = first_fit(draws, new);
                let nth = lobbies.last;
                let Lobby { taken, finds } = lobbies.all.get(nth).copied().unwrap_or_default();
                (u32::try_from(nth).unwrap_or(u32::MAX), finds == 1, taken >= new.max_players)
            }
            None => {
                let position = burst.positions.saturating_sub(1);
                let nth = position.checked_div(new.max_players).unwrap_or(0);
                let is_first = position.checked_rem(new.max_players) == Some(0);
                (nth, is_first, burst.positions.checked_rem(new.max_players) == Some(0))
            }
        };
        let role = match nth {
            0 if burst.is_announced => Role::Guest,
            _ if is_first => Role::Creator,
            _ => Role::Follower,
        };
        let is_promised = nth > 0 && !burst.is_announced;
        Self { nth, lobby_id: burst.lobby(nth), role, is_last, is_promised }
    }

    /// How to take the seat. Once the last position of a lobby is drawn, all its seats are promised, so no
    /// other find needs to see it. Of an announced lobby it is not known when its other seats lapse.
    pub(super) fn hiding(&self, burst: &Burst, new: &NewLobby) -> Hiding {
        if self.is_last && !burst.is_announced {
            let from_parties = new.party_size_max.is_some();
            Hiding::Promised { lapse: burst.opened_at + new.reservation, from_parties }
        } else {
            Hiding::No
        }
    }
}

/// The last lobby of which finds drew positions.
pub(super) fn last_lobby(burst: &Burst, new: &NewLobby) -> LobbyId {
    let nth = match &burst.draws {
        Some(draws) => u32::try_from(first_fit(draws, new).all.len()).unwrap_or(u32::MAX).saturating_sub(1),
        None => burst.positions.saturating_sub(1).checked_div(new.max_players).unwrap_or(0),
    };
    burst.lobby(nth)
}

/// The burst once all positions of its last lobby are drawn; with parties, which leave holes, as it is.
pub(super) fn with_last_lobby(burst: Burst, new: &NewLobby) -> Burst {
    let positions = match burst.draws {
        Some(_) => burst.positions,
        None => burst.positions.next_multiple_of(new.max_players.max(1)),
    };
    Burst { positions, ..burst }
}

/// The lobby of the find of so many `seats` that draws next.
pub(super) fn next_lobby(burst: &Burst, new: &NewLobby, seats: u32) -> LobbyId {
    let draws = burst.draws.as_ref().map(|draws| draws.iter().copied().chain([seats]).collect());
    let positions = burst.positions.saturating_add(seats);
    Position::drawn_last(&Burst { positions, draws, ..burst.clone() }, new).lobby_id
}

/// A lobby of a burst: the seats drawn there, and by how many finds.
#[derive(Clone, Copy, Debug, Default)]
struct Lobby {
    taken: u32,
    finds: u32,
}

/// The lobbies of a burst.
#[derive(Debug, Default)]
struct Lobbies {
    all: Vec<Lobby>,
    /// That of the find that drew last.
    last: usize,
}

/// Puts each of the finds that drew so many positions into the first lobby with room for it. The first one
/// is in the first lobby, whatever an announced one holds.
fn first_fit(draws: &[u32], new: &NewLobby) -> Lobbies {
    let for_parties = new.max_players_party.unwrap_or(0).max(new.max_players);
    let mut lobbies = Lobbies::default();
    for seats in draws {
        let capacity = if *seats > 1 { for_parties } else { new.max_players };
        let has_room = |lobby: &Lobby| lobby.taken.saturating_add(*seats) <= capacity;
        lobbies.last = lobbies.all.iter().position(has_room).unwrap_or(lobbies.all.len());
        match lobbies.all.get_mut(lobbies.last) {
            Some(Lobby { taken, finds }) => (*taken, *finds) = (*taken + seats, *finds + 1),
            None => lobbies.all.push(Lobby { taken: *seats, finds: 1 }),
        }
    }
    lobbies
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        base::ambient::{Ambient, Timestamp},
        models::{ids::BurstSecret, tag_digests::TagDigests},
    };

    fn new_lobby(max_players: u32, max_players_party: Option<u32>) -> NewLobby {
        NewLobby {
            pool: "n/v/arena/fra".parse().unwrap(),
            build_id: None,
            launch: None,
            shards: 1,
            reservation: Duration::from_secs(60),
            max_players,
            max_players_direct: max_players,
            max_players_party,
            party_size_max: max_players_party.map(|_| 4),
            idle_secs: 0,
            keep_secs: 0,
            is_private: false,
            tag_digests: TagDigests::default(),
        }
    }

    fn drawn(draws: &[u32], new: &NewLobby, is_announced: bool) -> (u32, Role, bool, bool) {
        let burst = Burst {
            first: LobbyId::nil(),
            secret: BurstSecret::random(&Ambient::system()),
            opened_at: Timestamp::default(),
            positions: draws.iter().sum(),
            draws: new.party_size_max.map(|_| draws.to_vec()),
            is_announced,
        };
        let at = Position::drawn_last(&burst, new);
        (at.nth, at.role, at.is_last, at.is_promised)
    }

    #[test]
    fn the_first_position_of_each_lobby_creates_it_and_the_last_one_hides_it() {
        use Role::{Creator, Follower};
        let expected = [
            (0, Creator, false, false),
            (0, Follower, false, false),
            (0, Follower, true, false),
            (1, Creator, false, true),
            (1, Follower, false, true),
            (1, Follower, true, true),
        ];
        for new in [new_lobby(3, None), new_lobby(3, Some(3))] {
            let positions = (1..=6).map(|count| drawn(&vec![1; count], &new, false));
            assert_eq!(positions.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_burst_without_seats_is_that_as_long_as_no_position_of_a_later_lobby_is_drawn() {
        let burst = |positions, draws| Burst {
            first: LobbyId::nil(),
            secret: BurstSecret::random(&Ambient::system()),
            opened_at: Timestamp::default(),
            positions,
            draws,
            is_announced: false,
        };
        let alone =
            [1, 3, 4].map(|positions| with_last_lobby(burst(positions, None), &new_lobby(3, None)).positions);
        assert_eq!(alone, [3, 3, 6]);
        let parties = with_last_lobby(burst(4, Some(vec![2, 2])), &new_lobby(3, Some(3)));
        assert_eq!(parties.positions, 4, "a third lobby may begin with the next position");
    }

    #[test]
    fn a_party_takes_the_first_lobby_with_room_and_smaller_ones_fill_the_holes() {
        use Role::{Creator, Follower};
        let new = new_lobby(5, Some(5));
        assert_eq!(drawn(&[2], &new, false), (0, Creator, false, false));
        assert_eq!(drawn(&[2, 2], &new, false), (0, Follower, false, false));
        assert_eq!(drawn(&[2, 2, 2], &new, false), (1, Creator, false, true), "one seat is too few");
        assert_eq!(drawn(&[2, 2, 2, 1], &new, false), (0, Follower, true, false), "and left for one");
        assert_eq!(drawn(&[2, 2, 2, 1, 3], &new, false), (1, Follower, true, true));
        assert_eq!(drawn(&[5], &new, false), (0, Creator, true, false));
        let wider = new_lobby(5, Some(6));
        assert_eq!(drawn(&[4, 2], &wider, false), (0, Follower, true, false));
        assert_eq!(drawn(&[5, 1], &wider, false), (1, Creator, false, true), "not for a player alone");
    }

    #[test]
    fn an_announced_lobby_is_neither_created_nor_kept_back() {
        use Role::{Creator, Follower, Guest};
        let expected = [
            (0, Guest, true, false),
            (1, Creator, false, false),
            (1, Follower, false, false),
            (1, Follower, true, false),
        ];
        let taken_and = |count: usize| [vec![2], vec![1; count]].concat();
        let positions = (1..=4).map(|count| drawn(&taken_and(count), &new_lobby(3, None), true));
        assert_eq!(positions.collect::<Vec<_>>(), expected);
        let parties = [vec![2, 1], vec![2, 2], vec![2, 2, 1]];
        let parties = parties.map(|draws| drawn(&draws, &new_lobby(3, Some(3)), true));
        assert_eq!(parties, [(0, Guest, true, false), (1, Creator, false, false), (0, Guest, true, false)]);
    }
}

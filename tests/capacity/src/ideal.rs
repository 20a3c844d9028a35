//! The optimum: what a packer would create that knows everything at once.
//!
//! It serves the same players in the same order as the measured run: each comes when its find arrived and
//! goes when its seat is given up or lapses. It puts each into the fullest lobby with a free seat, creates
//! one only when no lobby has any, and ends a lobby with its last player. No find waits, and no two finds
//! conflict. A party comes and goes together, and needs as many free seats as it has players.

use std::{cmp::Reverse, collections::BTreeSet};

/// When a find's players come and go, and how many they are.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// When they come.
    pub came: u64,
    /// When they go.
    pub went: u64,
    /// How many they are.
    pub players: usize,
}

/// When the ideal packer creates lobbies of `capacity` for players who come and go at these times: a time for
/// each lobby.
#[must_use]
pub fn creations(stays: &[Stay], capacity: usize) -> Vec<u64> {
    // At the same instant, who goes makes room for who comes.
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(stays.len() * 2);
    for (find, stay) in stays.iter().enumerate() {
        events.push((stay.came, true, find));
        events.push((stay.went, false, find));
    }
    events.sort_unstable();
    let (mut taken, mut creations): (Vec<usize>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut lobby_of = vec![0; stays.len()];
    let mut joinable: BTreeSet<(Reverse<usize>, usize)> = BTreeSet::new();
    for (at, comes, find) in events {
        let players = stays[find].players;
        let lobby = if comes {
            let roomy = joinable.range((Reverse(capacity.saturating_sub(players)), 0)..).next().copied();
            match roomy {
                Some(place @ (_, lobby)) => {
                    joinable.remove(&place);
                    lobby
                }
                None => {
                    taken.push(0);
                    creations.push(at);
                    taken.len() - 1
                }
            }
        } else {
            let lobby: usize = lobby_of[find];
            joinable.remove(&(Reverse(taken[lobby]), lobby));
            lobby
        };
        if comes {
            lobby_of[find] = lobby;
            taken[lobby] += players;
        } else {
            taken[lobby] -= players;
        }
        if (1..capacity).contains(&taken[lobby]) {
            joinable.insert((Reverse(taken[lobby]), lobby));
        }
    }
    creations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creations(stays: &[(u64, u64)], capacity: usize) -> Vec<u64> {
        let stay = |(came, went): &(u64, u64)| Stay { came: *came, went: *went, players: 1 };
        super::creations(&stays.iter().map(stay).collect::<Vec<_>>(), capacity)
    }

    #[test]
    fn a_party_is_in_one_lobby_and_smaller_ones_fill_the_hole() {
        let stays =
            [3, 2, 3, 1, 1].into_iter().zip(0..).map(|(players, came)| Stay { came, went: 99, players });
        assert_eq!(super::creations(&stays.collect::<Vec<_>>(), 5), [0, 2]);
        let stays = [4, 2, 1].into_iter().zip(0..).map(|(players, came)| Stay { came, went: 99, players });
        assert_eq!(super::creations(&stays.collect::<Vec<_>>(), 5), [0, 1]);
    }

    #[test]
    fn players_who_overlap_share_lobbies_up_to_their_capacity() {
        assert_eq!(creations(&[(0, 9), (1, 9), (2, 9)], 2), [0, 2]);
        assert_eq!(creations(&[(0, 1), (1, 2), (2, 3)], 1), [0, 1, 2]);
        assert!(creations(&[], 10).is_empty());
    }

    #[test]
    fn a_seat_that_became_free_is_taken_before_a_lobby_is_created() {
        assert_eq!(creations(&[(0, 9), (0, 4), (5, 9)], 2), [0]);
        // The lobby that emptied has ended.
        assert_eq!(creations(&[(0, 4), (5, 9)], 2), [0, 5]);
    }
}

//! The optimum: what a packer would create that knows everything at once.
//!
//! It serves the same players in the same order as the measured run: each comes when its find arrived and
//! goes when its seat is given up or lapses. It puts each into the fullest lobby with a free seat, creates
//! one only when no lobby has any, and ends a lobby with its last player. No find waits, and no two finds
//! conflict.

use std::{cmp::Reverse, collections::BTreeSet};

/// When the ideal packer creates lobbies of `capacity` for players who come and go at these times: a time for
/// each lobby.
#[must_use]
pub fn creations(stays: &[(u64, u64)], capacity: usize) -> Vec<u64> {
    // At the same instant, who goes makes room for who comes.
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(stays.len() * 2);
    for (player, (came, went)) in stays.iter().enumerate() {
        events.push((*came, true, player));
        events.push((*went, false, player));
    }
    events.sort_unstable();
    let (mut taken, mut creations): (Vec<usize>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut lobby_of = vec![0; stays.len()];
    let mut joinable: BTreeSet<(Reverse<usize>, usize)> = BTreeSet::new();
    for (at, comes, player) in events {
        let lobby = if comes {
            match joinable.pop_first() {
                Some((_, lobby)) => lobby,
                None => {
                    taken.push(0);
                    creations.push(at);
                    taken.len() - 1
                }
            }
        } else {
            let lobby: usize = lobby_of[player];
            joinable.remove(&(Reverse(taken[lobby]), lobby));
            lobby
        };
        if comes {
            lobby_of[player] = lobby;
            taken[lobby] += 1;
        } else {
            taken[lobby] -= 1;
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

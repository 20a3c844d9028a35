//! Seats that one request takes together: one, or those of a party.

use std::iter;

use serde::Serialize;

use crate::models::{ids::SeatId, player_data::PlayerData, tag_digests::TagKey};

/// The largest party.
pub const PARTY_SIZE_MAX: u32 = 16;

/// The players of a request: one, or a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// How many they are, at least one.
    pub size: u32,
    /// What the request says of each, in the order of their seats; missing ones have no data.
    pub data: Vec<Option<PlayerData>>,
}

impl Default for Party {
    fn default() -> Self {
        Self { size: 1, data: Vec::new() }
    }
}

/// Seats of one lobby that one request takes together, all or none. The first names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    first: SeatId,
    others: Vec<SeatId>,
}

impl Seats {
    /// One seat.
    #[must_use]
    pub const fn one(first: SeatId) -> Self {
        Self { first, others: Vec::new() }
    }

    /// The seats of a party, the first one and the others.
    #[must_use]
    pub const fn together(first: SeatId, others: Vec<SeatId>) -> Self {
        Self { first, others }
    }

    /// The seats of a party of `size`. The others follow from the first under the namespace's `key`: a retry
    /// that knows the first has the same ones.
    #[must_use]
    pub fn of_party(first: SeatId, size: u32, key: &TagKey) -> Self {
        let others = (1..size).map(|nth| {
            let [a, b, c, d, e, f, g, h, ..] = key.digest("seat of a party", &format!("{first}/{nth}"));
            SeatId::of_bytes([a, b, c, d, e, f, g, h])
        });
        let others = others.collect();
        Self::together(first, others)
    }

    /// The first.
    #[must_use]
    pub const fn first(&self) -> &SeatId {
        &self.first
    }

    /// The others.
    #[must_use]
    pub fn others(&self) -> &[SeatId] {
        &self.others
    }

    /// All, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &SeatId> {
        iter::once(&self.first).chain(&self.others)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.others.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// What the player of each is a member of; `None` for a player alone.
    #[must_use]
    pub fn membership(&self) -> Option<Membership> {
        (!self.others.is_empty())
            .then(|| Membership { party_id: self.first.clone(), party_size: self.count() })
    }
}

/// A player's party as its lobby server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Membership {
    /// The party's name within the lobby.
    pub party_id: SeatId,
    /// How many players took their seats together.
    pub party_size: u32,
}

/// A player as its lobby server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlayerDetails {
    /// The player's name within the lobby: that of the seat, the same for as long as the player has it.
    pub player_id: String,
    /// How often the player came back by the token that was shown: 0 for the first token of the seat.
    pub generation: u32,
    /// Whether an earlier token's connection may still be open, which this player's replaces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// The player's party, if it has one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// The player's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_data: Option<PlayerData>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::ambient::Ambient;

    #[test]
    fn the_seats_of_a_party_follow_from_its_first_and_the_key() {
        let ambient = Ambient::system();
        let (first, key) = (SeatId::random(&ambient), TagKey::random(&ambient));
        let party = Seats::of_party(first.clone(), 16, &key);
        assert_eq!(party.iter().collect::<BTreeSet<_>>().len(), 16);
        assert_eq!((party.count(), party.first()), (16, &first));
        assert_eq!(Seats::of_party(first.clone(), 16, &key.clone()), party);
        assert_eq!(Seats::of_party(first.clone(), 4, &key).others(), &party.others()[..3]);
        assert_ne!(Seats::of_party(first.clone(), 16, &TagKey::random(&ambient)), party);
        assert_eq!(Seats::of_party(first.clone(), 1, &key), Seats::one(first));
    }
}

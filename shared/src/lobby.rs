//! A lobby as stored, and what can be read off it: free seats, lapsed seats, whether it may end.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    ambient::Timestamp,
    ids::{LobbyId, SeatId},
    models::{Pool, Ports, ServerKey, Tags},
};

/// Where a lobby is in its life; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its game server has not said ready yet.
    Starting,
    /// Players may connect.
    Ready,
    /// Over; it stays readable for a day so that late calls get a true answer.
    Ended,
}

/// One lobby: the only truth about its seats.
///
/// Attribute names are those of the fields. A lobby of capacity 10 stays below 1 KB, the size of one write unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// What it can be found as; also the key of the index of candidates.
    pub pool: Pool,
    /// From when a find may look at it, in the index of candidates: its creation while seats are free, the time at which
    /// its first seat lapses while full; absent when no find may ever see it (closed, private, ended).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joinable_from: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it is in its life.
    pub stage: Stage,
    /// Whether its lobby server closed it to finds.
    pub closed: bool,
    /// The game server that runs it; absent once ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerKey>,
    /// Until when that server is known to live; [`Timestamp::NEVER`] for servers without lease.
    pub lease_until: Timestamp,
    /// Its server's ports.
    pub ports: Ports,
    /// Its tags, never changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: Tags,
    /// Seats that find fills it up to.
    pub max_players: u32,
    /// Seats that joins fill it up to, at least `max_players`.
    pub max_players_direct: u32,
    /// Seats taken: the entries of `reserved` and `connected` together, lapsed or not.
    pub taken: u32,
    /// Seats that wait for their player, each with the time at which it lapses.
    pub reserved: BTreeMap<SeatId, Timestamp>,
    /// Seats whose player connected, each with the time at which it lapses at the latest.
    pub connected: BTreeMap<SeatId, Timestamp>,
}

/// Why a find cannot take a seat in a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such lobby.
    Missing,
    /// It has ended.
    Ended,
    /// It is closed, or private.
    Hidden,
    /// Its server's lease has lapsed.
    LeaseLapsed,
    /// It belongs to another pool.
    OtherPool,
    /// Its seats are held.
    Full,
}

/// What a find can do with a lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A seat is free.
    Free,
    /// No seat is free, but these lapsed and can be taken over.
    TakeOver(Vec<SeatId>),
    /// Nothing.
    Refused(Refusal),
}

/// Lapsed seats that one write takes over at most, which keeps its expression far below DynamoDB's 4 KB.
const TAKE_OVER_MAX: usize = 25;

impl Lobby {
    /// What a find in `pool` can do here at `now`.
    #[must_use]
    pub fn entry(&self, pool: &Pool, now: Timestamp) -> Entry {
        if self.stage == Stage::Ended {
            return Entry::Refused(Refusal::Ended);
        }
        if self.pool != *pool {
            return Entry::Refused(Refusal::OtherPool);
        }
        if self.joinable_from.is_none() || self.closed {
            return Entry::Refused(Refusal::Hidden);
        }
        if self.lease_until <= now {
            return Entry::Refused(Refusal::LeaseLapsed);
        }
        if self.taken < self.max_players {
            return Entry::Free;
        }
        let mut lapsed: Vec<SeatId> = self.lapsed_seats(now).cloned().collect();
        lapsed.truncate(TAKE_OVER_MAX);
        // Direct joins may have filled it beyond what finds may: then one lapsed seat is not yet a free one.
        let held = self.taken.saturating_sub(u32::try_from(lapsed.len()).unwrap_or(u32::MAX));
        if held < self.max_players { Entry::TakeOver(lapsed) } else { Entry::Refused(Refusal::Full) }
    }

    /// Whether its tags contain each of `tags` with the same value.
    #[must_use]
    pub fn has_tags(&self, tags: &Tags) -> bool {
        contains_tags(&self.tags, tags)
    }

    /// When the first of its seats lapses; [`Timestamp::NEVER`] without seats.
    #[must_use]
    pub fn first_lapse(&self) -> Timestamp {
        self.seats().map(|(_, until)| until).min().unwrap_or(Timestamp::NEVER)
    }

    /// Seats held at `now`: reserved or connected, and not lapsed.
    #[must_use]
    pub fn held_seats(&self, now: Timestamp) -> usize {
        self.seats().filter(|(_, until)| *until > now).count()
    }

    /// Seats that find may still give out at `now`.
    #[must_use]
    pub fn free_seats(&self, now: Timestamp) -> u32 {
        self.max_players.saturating_sub(u32::try_from(self.held_seats(now)).unwrap_or(u32::MAX))
    }

    /// Whether it may be ended at `now` to make room: its server's lease lapsed, or nobody held a seat for `idle`.
    #[must_use]
    pub fn may_end(&self, idle: Duration, now: Timestamp) -> bool {
        let last_held = self.seats().map(|(_, until)| until).max().unwrap_or(self.created_at);
        self.stage != Stage::Ended && (self.lease_until <= now || last_held + idle <= now)
    }

    fn seats(&self) -> impl Iterator<Item = (&SeatId, Timestamp)> {
        self.reserved.iter().chain(&self.connected).map(|(seat_id, until)| (seat_id, *until))
    }

    fn lapsed_seats(&self, now: Timestamp) -> impl Iterator<Item = &SeatId> {
        self.seats().filter(move |(_, until)| *until <= now).map(|(seat_id, _)| seat_id)
    }
}

/// Whether `tags` contains each of `queried` with the same value.
#[must_use]
pub fn contains_tags(tags: &Tags, queried: &Tags) -> bool {
    queried.iter().all(|(name, value)| tags.get(name) == Some(value))
}

/// Puts the fullest lobby first, the oldest of equals before the others (decisions on matching).
pub fn sort_fullest_first(lobbies: &mut [Lobby], now: Timestamp) {
    lobbies.sort_by_cached_key(|lobby| (lobby.free_seats(now), lobby.created_at, lobby.lobby_id.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ambient::Ambient,
        models::{PortNumbers, Protocol, ServerPort},
    };

    const NOW: Timestamp = Timestamp(1_000_000);

    fn lobby(max_players: u32, lapses: &[u64]) -> Lobby {
        let ports = BTreeMap::from([(
            "game".to_owned(),
            ServerPort {
                hostname: "a.example".to_owned(),
                numbers: PortNumbers::Port(7777),
                protocol: Protocol::Udp,
            },
        )]);
        let seats = lapses.iter().map(|until| (SeatId::random(&Ambient::system()), Timestamp(*until)));
        Lobby {
            lobby_id: Ambient::system().uuid().into(),
            pool: "ns/v/arena/eu".parse().unwrap(),
            joinable_from: Some(Timestamp(5)),
            created_at: Timestamp(5),
            stage: Stage::Ready,
            closed: false,
            server: ServerKey::try_from("ns/s".to_owned()).ok(),
            lease_until: Timestamp::NEVER,
            ports: ports.try_into().unwrap(),
            tags: Tags::new(),
            max_players,
            max_players_direct: max_players,
            taken: u32::try_from(lapses.len()).unwrap(),
            reserved: seats.collect(),
            connected: BTreeMap::new(),
        }
    }

    fn entry(lobby: &Lobby) -> Entry {
        lobby.entry(&lobby.pool, NOW)
    }

    #[test]
    fn a_lapsed_seat_is_free_from_its_expiry_and_not_before() {
        assert_eq!(entry(&lobby(1, &[NOW.0 + 1])), Entry::Refused(Refusal::Full));
        assert!(matches!(entry(&lobby(1, &[NOW.0])), Entry::TakeOver(seats) if seats.len() == 1));
        assert_eq!(entry(&lobby(2, &[NOW.0])), Entry::Free);
    }

    #[test]
    fn a_lobby_filled_directly_beyond_its_size_needs_enough_lapsed_seats() {
        let held = NOW.0 + 1;
        assert_eq!(entry(&lobby(2, &[held, held, NOW.0])), Entry::Refused(Refusal::Full));
        assert!(
            matches!(entry(&lobby(2, &[held, NOW.0, NOW.0])), Entry::TakeOver(seats) if seats.len() == 2)
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
            assert_eq!(entry(&lobby), Entry::Refused(refusal));
        }
        let other = "ns/v2/arena/eu".parse().unwrap();
        assert_eq!(open.entry(&other, NOW), Entry::Refused(Refusal::OtherPool));
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
    fn a_lobby_may_end_when_its_last_seat_lapsed_and_its_idle_time_passed() {
        let idle = Duration::from_millis(10);
        assert!(!lobby(2, &[NOW.0 + 1]).may_end(Duration::ZERO, NOW));
        assert!(lobby(2, &[NOW.0, 3]).may_end(Duration::ZERO, NOW));
        assert!(!lobby(2, &[NOW.0 - 9]).may_end(idle, NOW));
        assert!(lobby(2, &[NOW.0 - 10]).may_end(idle, NOW));
        let dead = Lobby { lease_until: NOW, ..lobby(2, &[NOW.0 + 1]) };
        assert!(dead.may_end(idle, NOW));
        assert!(!Lobby { stage: Stage::Ended, ..dead }.may_end(idle, NOW));
    }
}

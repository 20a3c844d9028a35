//! Bursts of creations, and the lobbies without room at which many of them end.

use std::time::Duration;

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    models::{ids::LobbyId, lobby::Lobby},
    store::creation::{Burst, HeadKey},
};

/// How long finds of an instance pass over a lobby that it saw without room for them: the index may show it
/// for as long.
const SEEN_FULL_FOR: Duration = Duration::from_millis(200);

/// What an instance knows of bursts.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Bursts {
    known: BoundedMap<HeadKey, KnownBurst>,
    /// When lobbies were last seen full, or almost so, and what was left.
    full: BoundedMap<LobbyId, (Timestamp, Left)>,
    /// When lobbies were last seen crowded.
    crowded: BoundedMap<LobbyId, Timestamp>,
}

/// Seats that a lobby had left, if those were fewer than some request wants.
#[derive(Clone, Copy, Debug)]
struct Left {
    for_one: u32,
    for_a_party: u32,
}

impl Left {
    fn of(lobby: &Lobby) -> Option<Self> {
        let left = |seats| lobby.capacity_for_finds(seats).saturating_sub(lobby.taken);
        let largest = lobby.party_size_max.unwrap_or(1);
        let (for_one, for_a_party) = (left(1), left(largest));
        (for_one < 1 || for_a_party < largest).then_some(Self { for_one, for_a_party })
    }

    const fn has(self, seats: u32) -> bool {
        seats <= if seats == 1 { self.for_one } else { self.for_a_party }
    }
}

#[derive(Debug)]
struct KnownBurst {
    burst: Burst,
    /// The burst's last lobby so far.
    last_lobby: LobbyId,
    is_exhausted: bool,
    /// What that lobby has left.
    left: Option<Left>,
}

impl KnownBurst {
    fn is_exhausted_for(&self, seats: u32) -> bool {
        self.is_exhausted || self.left.is_some_and(|left| !left.has(seats))
    }
}

impl Bursts {
    /// Notes a burst and its last lobby as this instance knows them.
    pub(in crate::matchmaking) fn remember(
        &self,
        key: &HeadKey,
        burst: Burst,
        last_lobby: LobbyId,
        now: Timestamp,
    ) {
        let known = KnownBurst { burst, last_lobby, is_exhausted: false, left: None };
        self.known.insert(key.clone(), now, known);
    }

    /// Notes that `lobby` was seen, if some request gets no seats there: for those, a burst that ends with it
    /// is exhausted.
    pub(in crate::matchmaking) fn note_seen(&self, lobby: &Lobby, now: Timestamp) {
        if lobby.is_crowded(now) {
            self.crowded.insert(lobby.lobby_id.clone(), now, now);
        }
        let Some(left) = Left::of(lobby) else { return };
        self.full.insert(lobby.lobby_id.clone(), now, (now, left));
        let key = HeadKey::new(&lobby.pool, &lobby.tag_digests, lobby.max_players);
        self.known.with(&key, |known| {
            if known.last_lobby == lobby.lobby_id {
                known.left = Some(left);
            }
        });
    }

    /// Whether the lobby was seen a moment ago, and since `since`, without so many `seats`: there is nothing
    /// to try, unless a player left within that moment.
    pub(in crate::matchmaking) fn was_full(
        &self,
        lobby_id: &LobbyId,
        seats: u32,
        since: Timestamp,
        now: Timestamp,
    ) -> bool {
        let since = since.max(now.before(SEEN_FULL_FOR));
        self.full.with(lobby_id, |(seen_at, left)| *seen_at >= since && !left.has(seats)).unwrap_or(false)
    }

    /// The same, also of one whose item took no more writes: finds share the next one.
    pub(in crate::matchmaking) fn was_full_or_crowded(
        &self,
        lobby_id: &LobbyId,
        seats: u32,
        since: Timestamp,
        now: Timestamp,
    ) -> bool {
        let is_recent = |seen_at: &mut Timestamp| *seen_at >= since.max(now.before(SEEN_FULL_FOR));
        self.was_full(lobby_id, seats, since, now) || self.crowded.with(lobby_id, is_recent).unwrap_or(false)
    }

    /// Notes that no find needs to look at `burst` again.
    pub(in crate::matchmaking) fn note_exhausted(&self, key: &HeadKey, burst: &Burst) {
        self.known.with(key, |known| known.is_exhausted |= known.burst == *burst);
    }

    /// The burst of `key`, when it is younger than `age_max` and not known to be exhausted for a request of
    /// so many `seats`.
    pub(in crate::matchmaking) fn young(
        &self,
        key: &HeadKey,
        seats: u32,
        now: Timestamp,
        age_max: Duration,
    ) -> Option<Burst> {
        let young = |known: &mut KnownBurst| {
            let is_young = now.since(known.burst.opened_at) < age_max;
            (is_young && !known.is_exhausted_for(seats)).then(|| known.burst.clone())
        };
        self.known.with(key, young).flatten()
    }

    /// The burst of `key`, when all its lobbies that this instance knows of lack so many `seats`, or are not
    /// created.
    pub(in crate::matchmaking) fn exhausted(&self, key: &HeadKey, seats: u32) -> Option<Burst> {
        self.known.with(key, |known| known.is_exhausted_for(seats).then(|| known.burst.clone())).flatten()
    }
}

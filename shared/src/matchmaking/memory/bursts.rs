//! Bursts of creations, and the full lobbies at which many of them end.

use std::time::Duration;

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    models::{ids::LobbyId, lobby::Lobby},
    store::creation::{Burst, HeadKey},
};

/// How long finds of an instance pass over a lobby that it saw full: the index may show it for as long.
const SEEN_FULL_FOR: Duration = Duration::from_millis(200);

/// What an instance knows of bursts.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Bursts {
    known: BoundedMap<HeadKey, KnownBurst>,
    /// When lobbies were last seen full.
    full: BoundedMap<LobbyId, Timestamp>,
}

#[derive(Debug)]
struct KnownBurst {
    burst: Burst,
    /// The burst's last lobby so far.
    last_lobby: LobbyId,
    is_exhausted: bool,
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
        let known = KnownBurst { burst, last_lobby, is_exhausted: false };
        self.known.insert(key.clone(), now, known);
    }

    /// Notes that `lobby` was seen, if it is full: a burst that ends with it is exhausted.
    pub(in crate::matchmaking) fn note_seen(&self, lobby: &Lobby, now: Timestamp) {
        if lobby.taken < lobby.max_players {
            return;
        }
        self.full.insert(lobby.lobby_id.clone(), now, now);
        let key = HeadKey::new(&lobby.pool, &lobby.tag_digests, lobby.max_players);
        self.known.with(&key, |known| known.is_exhausted |= known.last_lobby == lobby.lobby_id);
    }

    /// Whether the lobby was seen full a moment ago, and since `since`: there is nothing to try, unless a
    /// player left within that moment.
    pub(in crate::matchmaking) fn was_full(
        &self,
        lobby_id: &LobbyId,
        since: Timestamp,
        now: Timestamp,
    ) -> bool {
        let since = since.max(now.before(SEEN_FULL_FOR));
        self.full.with(lobby_id, |seen_at| *seen_at >= since).unwrap_or(false)
    }

    /// Notes that no find needs to look at `burst` again.
    pub(in crate::matchmaking) fn note_exhausted(&self, key: &HeadKey, burst: &Burst) {
        self.known.with(key, |known| known.is_exhausted |= known.burst == *burst);
    }

    /// The burst of `key`, when it is younger than `age_max` and not known to be exhausted.
    pub(in crate::matchmaking) fn young(
        &self,
        key: &HeadKey,
        now: Timestamp,
        age_max: Duration,
    ) -> Option<Burst> {
        let young = |known: &mut KnownBurst| {
            let is_young = now.since(known.burst.opened_at) < age_max;
            (is_young && !known.is_exhausted).then(|| known.burst.clone())
        };
        self.known.with(key, young).flatten()
    }

    /// The burst of `key`, when all its lobbies that this instance knows of are full, or are not created.
    pub(in crate::matchmaking) fn exhausted(&self, key: &HeadKey) -> Option<Burst> {
        self.known.with(key, |known| known.is_exhausted.then(|| known.burst.clone())).flatten()
    }
}

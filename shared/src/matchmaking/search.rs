//! What a find looks for, and where it wants a seat.

use std::sync::Arc;

use crate::{
    auth::settings::Settings,
    models::{ids::LobbyId, lobby_config::LobbyConfig, pool::Pool},
    rules::criteria::{Criteria, NewLobby, SearchedPool},
    seating::reply::Found,
    store::{
        creation::HeadKey,
        seats::{Hiding, PartyCapacity},
    },
};

/// What a find looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The request's criteria, after every rule.
    pub criteria: Criteria,
    /// The namespace's settings.
    pub settings: Arc<Settings>,
    /// Whether a lobby may be created (I8).
    pub may_create: bool,
    /// The configuration that the request gave for a lobby of its own.
    pub config: Option<LobbyConfig>,
}

impl Search {
    /// The head of the lobbies that it would create.
    pub(super) fn head_key(&self) -> HeadKey {
        let NewLobby { pool, tag_digests, max_players, .. } = &self.criteria.new_lobby;
        HeadKey::new(pool, tag_digests, *max_players)
    }

    /// The same with its new lobby in another region, in whose pools it looks, too.
    pub(super) fn creating(&self, new_lobby: &NewLobby) -> Self {
        let mut search = self.clone();
        let beyond = search.criteria.beyond.iter().filter(|searched| is_beside(searched, new_lobby));
        search.criteria.pools.extend(beyond.cloned());
        search.criteria.new_lobby = new_lobby.clone();
        search
    }
}

/// Whether lobbies of a pool are in the region of a new one.
pub(super) fn is_beside(searched: &SearchedPool, new_lobby: &NewLobby) -> bool {
    searched.pool.region_id == new_lobby.pool.region_id
}

/// The `pools` by distance: those of equally near regions together, the nearest first.
pub(super) fn by_distance(pools: &[SearchedPool]) -> impl Iterator<Item = &[SearchedPool]> {
    pools.chunk_by(|one, other| one.distance == other.distance)
}

/// The result of a look at existing lobbies.
pub(super) enum Existing {
    Taken(Box<Found>),
    None {
        /// Whether the look left lobbies aside that may have a seat: beyond its limit, or crowded ones.
        has_more: bool,
    },
}

impl Existing {
    pub(super) fn of(found: Option<Found>, has_more: bool) -> Self {
        found.map_or(Self::None { has_more }, |found| Self::Taken(Box::new(found)))
    }
}

/// A lobby in which a find wants a seat.
#[derive(Debug)]
pub(super) struct Claimed {
    /// Its pool, in its shard.
    pub(super) pool: Pool,
    pub(super) lobby_id: LobbyId,
    /// What it holds for parties.
    pub(super) capacity: PartyCapacity,
    pub(super) hiding: Hiding,
}

/// The one of `pools` that `pool` is a shard of.
pub(super) fn searched<'a>(pools: &'a [SearchedPool], pool: &Pool) -> Option<&'a SearchedPool> {
    pools.iter().find(|searched| searched.pool.is_shard_of(pool))
}

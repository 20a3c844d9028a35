//! What a find looks for, and where it wants a seat.

use std::sync::Arc;

use crate::{
    auth::settings::Settings,
    models::{ids::LobbyId, lobby_config::LobbyConfig, pool::Pool},
    rules::criteria::{Criteria, SearchedPool},
    seating::reply::Found,
    store::lobbies::Hiding,
};

/// What a find looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// What was asked, after every rule.
    pub criteria: Criteria,
    /// The namespace's settings.
    pub settings: Arc<Settings>,
    /// Whether a lobby may be created (I8).
    pub may_create: bool,
    /// What the creator of a lobby of its own configured.
    pub config: Option<LobbyConfig>,
}

impl Search {
    /// The pool that is searched when it is the only one and no tags are queried: memory covers such searches
    /// alone.
    pub(super) fn only_pool(&self) -> Option<&SearchedPool> {
        match self.criteria.pools.as_slice() {
            [searched] if self.criteria.tags.is_empty() => Some(searched),
            _ => None,
        }
    }
}

/// What a look at the lobbies that are there came to.
pub(super) enum Existing {
    Taken(Box<Found>),
    None {
        /// Whether it ended at its limit.
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
    pub(super) hiding: Hiding,
}

pub(super) fn searched<'a>(pools: &'a [SearchedPool], pool: &Pool) -> Option<&'a SearchedPool> {
    pools.iter().find(|searched| searched.pool.is_shard_of(pool))
}

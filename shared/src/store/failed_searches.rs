//! Searches for capacity without result, shared by all instances: each reads every game server and thousands
//! of lobbies.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;

use crate::{
    base::{ambient::Timestamp, record::known_keys},
    models::{
        errors::Error,
        ids::{GameMode, NamespaceId, RegionId},
        shortage::Obstacles,
    },
    store::{
        client::Store,
        items::{Item, number, text, to_item},
    },
};

/// How long a search without result is believed at most (decision 28).
pub const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Age from which one instance searches again while the others still believe the result.
const AGEING: Duration = Duration::from_millis(500);
/// How long the result of a search is kept; long past any use.
const KEPT_FOR: Duration = Duration::from_secs(3_600);

/// The key of a search's result: what it searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchKey(String);

impl SearchKey {
    /// Capacity below a namespace's `lobby_count_max`.
    #[must_use]
    pub fn below_cap(namespace_id: &NamespaceId) -> Self {
        Self(format!("room/{namespace_id}"))
    }

    /// A place for a lobby of a mode on a game server of a region.
    #[must_use]
    pub fn on_a_server(namespace_id: &NamespaceId, region_id: &RegionId, mode: &GameMode) -> Self {
        Self(format!("room/{namespace_id}/{region_id}/{mode}"))
    }

    /// The same for a client that may displace no lobby.
    #[must_use]
    pub fn without_displacing(self) -> Self {
        Self(format!("{}~", self.0))
    }
}

/// A search without result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FailedSearch {
    /// When it ended; absent while the first one is under way.
    #[serde(default)]
    pub found_at: Timestamp,
    /// The namespace's cap that it used.
    #[serde(default)]
    pub lobby_count_max: u32,
    /// The obstacles at the game servers, of those known to this release.
    #[serde(default, deserialize_with = "known_keys")]
    pub obstacles: Obstacles,
}

impl Store {
    /// The last search for `key` under a cap of `lobby_count_max`, if it had no result and is recent enough
    /// to be believed at `now`. `None` when this instance is to search. One consistent read unit, and one
    /// write unit when it ages.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn believed_search(
        &self,
        key: &SearchKey,
        lobby_count_max: u32,
        now: Timestamp,
    ) -> Result<Option<FailedSearch>, Error> {
        let item = Item::from([("pk".to_owned(), text(&key.0))]);
        let last: Option<FailedSearch> = self.read(&self.tables.ledger, item).await?;
        let is_believed = |search: &FailedSearch| {
            search.lobby_count_max == lobby_count_max && now < search.found_at + BELIEVED_FOR
        };
        let Some(last) = last.filter(is_believed) else { return Ok(None) };
        let is_ageing = now >= last.found_at + AGEING;
        Ok(if is_ageing && self.claims_search(key, now).await? { None } else { Some(last) })
    }

    /// Whether this instance is the one to search again.
    async fn claims_search(&self, key: &SearchKey, now: Timestamp) -> Result<bool, Error> {
        let write = self
            .on_ledger(&key.0)
            .change("SET #claimed_at = :now")
            .when("attribute_not_exists(#claimed_at) OR #claimed_at <= :stale")
            .with(":now", number(now))
            .with(":stale", number(now.before(BELIEVED_FOR)));
        self.applies(write).await
    }

    /// Publishes a search without result to all instances, unless a later one is stored. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn publish_failed_search(&self, key: &SearchKey, search: &FailedSearch) -> Result<(), Error> {
        let change = "SET #found_at = :at, #lobby_count_max = :cap, #obstacles = :obstacles, \
                      #expires_at = :expiry REMOVE #claimed_at";
        let write = self
            .on_ledger(&key.0)
            .change(change)
            .when("attribute_not_exists(#found_at) OR #found_at < :at")
            .with(":at", number(search.found_at))
            .with(":cap", number(search.lobby_count_max))
            .with(":obstacles", AttributeValue::M(to_item(&search.obstacles)?))
            .with(":expiry", number((search.found_at + KEPT_FOR).secs()));
        self.applies(write).await.map(|_applied| ())
    }
}

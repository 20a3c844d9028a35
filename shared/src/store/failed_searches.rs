//! Searches for capacity without result, shared by all instances: each reads every game server and thousands
//! of lobbies. And what confirms one before a find is refused for it.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;

use crate::{
    base::{ambient::Timestamp, record::known_keys},
    models::{
        errors::Error,
        ids::{GameMode, NamespaceId, RegionId, ServerKey},
        server::Server,
        shortage::Obstacles,
    },
    store::{
        client::{Store, TableNames},
        creation::{Burst, HeadKey},
        items::{from_item, number, to_item},
        keys::{pk_item, server_item},
    },
};

/// How long a search without result is believed at most (decision 28).
pub const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Age from which one instance searches again while the others still believe the result.
const AGEING: Duration = Duration::from_millis(500);
/// How long the result of a search is kept; long past any use.
const KEPT_FOR: Duration = Duration::from_secs(3_600);

/// The key of a search's result: what it searched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

impl FailedSearch {
    /// Until when it is believed at most.
    #[must_use]
    pub fn believed_until(&self) -> Timestamp {
        self.found_at + BELIEVED_FOR
    }

    /// From when one instance searches again.
    #[must_use]
    pub fn ages_at(&self) -> Timestamp {
        self.found_at + AGEING
    }
}

/// What one read shows of a shortage.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The burst that a head names.
    pub burst: Option<Burst>,
    /// Game servers as they are.
    pub servers: Vec<Server>,
    /// The last search for each key, if one ended without result.
    pub searches: Vec<Option<FailedSearch>>,
}

impl Store {
    /// The burst of `head`, `servers`, and the searches for `keys`, as they are, in one call. One consistent
    /// read unit for each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn evidence(
        &self,
        head: Option<&HeadKey>,
        servers: &[ServerKey],
        keys: &[SearchKey],
    ) -> Result<Evidence, Error> {
        let TableNames { ledger, servers: server_table, .. } = &self.tables;
        let of_ledger = head.map(HeadKey::as_str).into_iter().chain(keys.iter().map(|key| key.0.as_str()));
        let of_servers = servers.iter().map(server_item).collect();
        let wanted =
            [(ledger.as_str(), of_ledger.map(pk_item).collect()), (server_table.as_str(), of_servers)];
        let mut found = self.batch_get_of(wanted, true).await?;
        let mut by_key: HashMap<_, _> = found
            .remove(ledger)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|item| Some((item.get("pk")?.as_s().ok()?.clone(), item)))
            .collect();
        let burst = head.and_then(|head| by_key.remove(head.as_str())).map(from_item).transpose()?;
        let searches = keys.iter().map(|key| by_key.remove(&key.0).map(from_item).transpose());
        let servers = found.remove(server_table).unwrap_or_default().into_iter().map(from_item);
        Ok(Evidence {
            burst,
            searches: searches.collect::<Result<_, _>>()?,
            servers: servers.collect::<Result<_, _>>()?,
        })
    }

    /// The last search for `key`, if one ended without result. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn last_failed_search(&self, key: &SearchKey) -> Result<Option<FailedSearch>, Error> {
        self.read(&self.tables.ledger, pk_item(&key.0), true).await
    }

    /// Whether this instance is the one to search again; no other one is for a second then. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn claims_search(&self, key: &SearchKey, now: Timestamp) -> Result<bool, Error> {
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

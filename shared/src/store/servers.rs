//! Game servers and their places for lobbies.

use std::{collections::BTreeSet, fmt};

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use serde::{Deserialize, Serialize};

use super::{Item, Store, failure, from_item, number, text, to_item};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{GameMode, NamespaceId, RegionId},
    models::{Ports, ServerKey},
};

/// The index of servers by namespace and region, then `free_from`.
pub const PLACEMENTS_INDEX: &str = "placements";

/// Servers whose places one creation compares at most.
const SERVERS_COMPARED_MAX: i32 = 100;

/// Where servers stand in for each other: a namespace's region. As text, both joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlacementPool {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The region.
    pub region_id: RegionId,
}

impl fmt::Display for PlacementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace_id, self.region_id)
    }
}

impl TryFrom<String> for PlacementPool {
    type Error = crate::ids::InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (namespace, region) = text.split_once('/').ok_or(crate::ids::InvalidIdentifier)?;
        Ok(Self { namespace_id: namespace.parse()?, region_id: region.parse()? })
    }
}

impl From<PlacementPool> for String {
    fn from(pool: PlacementPool) -> Self {
        pool.to_string()
    }
}

/// A game server: where lobbies run. Attribute names are those of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its namespace and identifier.
    pub server: ServerKey,
    /// Its namespace and region; the key of the index.
    pub placement_pool: PlacementPool,
    /// From when it has a free place: its registration while it has, [`Timestamp::NEVER`] while it has none.
    pub free_from: Timestamp,
    /// When it registered.
    pub registered_at: Timestamp,
    /// Lobbies that it can run at once.
    pub capacity: u32,
    /// Lobbies that it runs.
    pub used: u32,
    /// Until when it is known to live; [`Timestamp::NEVER`] without lease.
    pub lease_until: Timestamp,
    /// Modes that it can run; every one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game_modes: Option<BTreeSet<GameMode>>,
    /// Its ports.
    pub ports: Ports,
}

impl Server {
    /// Whether a lobby of `mode` may be placed here at `now`.
    #[must_use]
    pub fn fits(&self, mode: &GameMode, now: Timestamp) -> bool {
        self.used < self.capacity
            && self.lease_until > now
            && self.game_modes.as_ref().is_none_or(|modes| modes.contains(mode))
    }
}

impl Store {
    /// Adds a game server that was not there; whether it was added. One write unit, and one of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_server(&self, server: &Server) -> Result<bool, Error> {
        let write = self
            .client
            .put_item()
            .table_name(&self.tables.servers)
            .set_item(Some(to_item(server)?))
            .condition_expression("attribute_not_exists(#server)")
            .expression_attribute_names("#server", "server")
            .return_consumed_capacity(self.meter.mode());
        match write.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(true)
            }
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(_)) => {
                    self.meter.refused(1.0);
                    Ok(false)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Servers of `pool` with a free place as the index knows it, at most 100. Two calls, eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers_with_places(
        &self,
        pool: &PlacementPool,
        now: Timestamp,
    ) -> Result<Vec<Server>, Error> {
        self.servers_until(pool, now).await
    }

    /// Servers of `pool`, full ones too, at most 100. Two calls, eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers(&self, pool: &PlacementPool) -> Result<Vec<Server>, Error> {
        self.servers_until(pool, Timestamp::NEVER).await
    }

    async fn servers_until(&self, pool: &PlacementPool, free_from: Timestamp) -> Result<Vec<Server>, Error> {
        let answer = self
            .client
            .query()
            .table_name(&self.tables.servers)
            .index_name(PLACEMENTS_INDEX)
            .key_condition_expression("#placement_pool = :pool AND #free_from <= :until")
            .expression_attribute_names("#placement_pool", "placement_pool")
            .expression_attribute_names("#free_from", "free_from")
            .expression_attribute_values(":pool", text(pool.to_string()))
            .expression_attribute_values(":until", number(free_from))
            .limit(SERVERS_COMPARED_MAX)
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        let key = |item: Item| item.get("server").cloned();
        let keys: Vec<Item> = answer
            .items
            .unwrap_or_default()
            .into_iter()
            .filter_map(key)
            .map(|server| Item::from([("server".to_owned(), server)]))
            .collect();
        self.batch_get(&self.tables.servers, keys).await?.into_iter().map(from_item).collect()
    }
}

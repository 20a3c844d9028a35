//! Games and their regions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    base::ambient::Timestamp,
    models::ids::{GameId, RegionId},
};

/// A region of a game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// The name that players read.
    pub display_name: String,
    /// The name of the hosting provider there.
    pub provider_display_name: String,
    /// Degrees north, -90 to 90.
    pub latitude: f64,
    /// Degrees east, -180 to 180.
    pub longitude: f64,
    /// The URL that clients call to measure their latency ([`crate::rules::probe_url`]); none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// How game servers are started there; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starter: Option<StarterKind>,
}

/// The ways in which game servers are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StarterKind {
    /// A process of this machine: the local stack.
    Process,
    /// A task of Amazon ECS.
    Ecs,
    /// A request to a studio's backend.
    Webhook,
    /// One that only a later release knows, which cannot start anything here.
    #[serde(other)]
    Unknown,
}

impl StarterKind {
    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Game {
    /// Its identifier.
    pub game_id: GameId,
    /// Its name in addresses, unique over the deployment.
    pub name_id: String,
    /// The name that people read.
    pub display_name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its regions.
    pub regions: BTreeMap<RegionId, Region>,
}

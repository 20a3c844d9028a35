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

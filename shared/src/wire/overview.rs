//! Lists of lobbies and regions, and statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::models::{
    coordinates::{Coordinates, MILES_PER_KILOMETER},
    ids::{GameMode, LobbyId, RegionId},
};

/// Response of lobbies.list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ListLobbiesResponse {
    /// The modes whose lobbies may be listed.
    pub game_modes: Vec<GameModeInfo>,
    /// The game's regions, nearest first.
    pub regions: Vec<RegionInfo>,
    /// The lobbies, those with a free seat first.
    pub lobbies: Vec<LobbyInfo>,
    /// Whether there are more lobbies than the pages of a list may have; only present when there are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    /// The query parameter `cursor` of the next page; only present when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A game mode as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GameModeInfo {
    /// Its name.
    pub game_mode_id: GameMode,
}

/// A lobby as lists show it.
#[derive(Clone, Debug, Serialize)]
pub struct LobbyInfo {
    /// Its region.
    pub region_id: RegionId,
    /// Its mode.
    pub game_mode_id: GameMode,
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// Its capacity for finds.
    pub max_players_normal: u32,
    /// Its capacity for joins.
    pub max_players_direct: u32,
    /// The largest party.
    pub max_players_party: u32,
    /// Seats held, reserved and connected.
    pub total_player_count: u32,
    /// Those of them whose players have connected.
    pub connected_player_count: u32,
    /// The state that its lobby server set, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<RawValue>>,
}

/// Response of regions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListRegionsResponse {
    /// The game's regions, nearest first.
    pub regions: Vec<RegionInfo>,
}

/// A region as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionInfo {
    /// Its short name.
    pub region_id: RegionId,
    /// The name of the hosting provider there.
    pub provider_display_name: String,
    /// The name that players read.
    pub region_display_name: String,
    /// Where it is, in degrees.
    pub datacenter_coord: Coord,
    /// Its distance from the client; 0 when the client's location is unknown.
    pub datacenter_distance_from_client: Distance,
    /// The URL that clients call to measure their latency; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
}

/// A place on Earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coord {
    /// North.
    pub latitude: f64,
    /// East.
    pub longitude: f64,
}

/// A distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distance {
    /// In kilometres.
    pub kilometers: f64,
    /// In miles.
    pub miles: f64,
}

/// The regions of a game as a client at `viewer` reads them: nearest first, or by name if the client's
/// location is unknown.
#[must_use]
pub fn regions(
    regions: &BTreeMap<RegionId, crate::models::game::Region>,
    viewer: Option<Coordinates>,
) -> Vec<RegionInfo> {
    let info = |(region_id, region): (&RegionId, &crate::models::game::Region)| {
        let kilometers = viewer.map_or(0.0, |viewer| viewer.distance_km(region.coordinates()));
        RegionInfo {
            region_id: region_id.clone(),
            provider_display_name: region.provider_display_name.clone(),
            region_display_name: region.display_name.clone(),
            datacenter_coord: Coord { latitude: region.latitude, longitude: region.longitude },
            datacenter_distance_from_client: Distance { kilometers, miles: kilometers * MILES_PER_KILOMETER },
            probe: region.probe.clone(),
        }
    };
    let mut infos: Vec<_> = regions.iter().map(info).collect();
    let distance = |info: &RegionInfo| info.datacenter_distance_from_client.kilometers;
    infos.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    infos
}

/// Response of players.statistics, also stored for the other instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerStatistics {
    /// Seats held in the namespace.
    pub player_count: u64,
    /// The same by mode.
    pub game_modes: BTreeMap<GameMode, GameModeStatistics>,
}

/// Seats held in lobbies of a mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameModeStatistics {
    /// Seats held.
    pub player_count: u64,
    /// The same by region.
    pub regions: BTreeMap<RegionId, RegionStatistics>,
}

/// Seats held in lobbies of a mode in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionStatistics {
    /// Seats held.
    pub player_count: u64,
}

//! Versions of a game: immutable matchmaking configurations.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    base::{
        ambient::Timestamp,
        json::{object, objects_by_name, optional_object},
    },
    models::{
        ids::{GameId, GameMode, RegionId, VersionId},
        launch::ServersConfig,
        secret::Secret,
    },
};

/// A studio's backend that decides which players may use an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The URL: https, on a public address ([`crate::rules::public_url`]).
    pub url: String,
    /// Headers of the request, by name; their values are secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
}

/// Whether an action is enabled, and for which players.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Whether requests may use it.
    pub enabled: bool,
    /// The backend that decides which players may; all may when absent.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

impl Action {
    const fn open_to_all(enabled: bool) -> Self {
        Self { enabled, verification: None }
    }
}

/// A way into lobbies: an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EntryKind {
    /// Matching.
    Find,
    /// Entering a lobby by its identifier.
    Join,
    /// Creating a lobby.
    Create,
}

impl EntryKind {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Find, Self::Join, Self::Create];

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The ways into the lobbies of a mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Actions {
    /// Matching.
    #[serde(deserialize_with = "object")]
    pub find: Action,
    /// Entering a lobby by its identifier.
    #[serde(deserialize_with = "object")]
    pub join: Action,
    /// Creating a lobby.
    #[serde(deserialize_with = "object")]
    pub create: Action,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            find: Action::open_to_all(true),
            join: Action::open_to_all(true),
            create: Action::open_to_all(false),
        }
    }
}

/// A game mode of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameModeConfig {
    /// The regions that it runs in; the first is the default.
    pub regions: Vec<RegionId>,
    /// A lobby's capacity for finds.
    #[serde(default = "GameModeConfig::default_max_players")]
    pub max_players: u32,
    /// A lobby's capacity for joins; `max_players` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_players_direct: Option<u32>,
    /// A lobby's capacity for parties, where that is more than the capacity of their door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_players_party: Option<u32>,
    /// The largest party that it seats together; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party_size_max: Option<u32>,
    /// Whether lists show its lobbies.
    #[serde(default = "yes")]
    pub listable: bool,
    /// Whether requests may carry tags.
    #[serde(default)]
    pub taggable: bool,
    /// Whether requests may choose a lobby's size.
    #[serde(default)]
    pub allow_dynamic_max_players: bool,
    /// How long a seat waits for its player, in seconds.
    #[serde(default = "GameModeConfig::default_reservation_seconds")]
    pub reservation_seconds: u32,
    /// How long an empty lobby stays, in seconds.
    #[serde(default)]
    pub idle_seconds: u32,
    /// How long a seat is kept for a player who disconnected, in seconds, unless the game server says
    /// otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_seconds: u32,
    /// Parts of the index of its lobbies in each region, over which its writes spread (decision 20).
    #[serde(default = "GameModeConfig::default_pool_shards")]
    pub pool_shards: u32,
    /// How far above the best latency of a find a region may be whose lobbies it joins before it creates one,
    /// in milliseconds; 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_tolerance: Option<u32>,
    /// The same for regions in which it creates a lobby; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_max: Option<u32>,
    /// The ways in.
    #[serde(default, deserialize_with = "object")]
    pub actions: Actions,
}

/// The longest time for which a seat is kept for a player who disconnected, in seconds.
pub const KEEP_SECONDS_MAX: u32 = 600;
/// The default of `latency_tolerance`, in milliseconds.
const LATENCY_TOLERANCE_DEFAULT: u32 = 50;
/// The default of `latency_max`, in milliseconds.
const LATENCY_ABOVE_BEST_DEFAULT: u32 = 100;

impl GameModeConfig {
    const fn default_max_players() -> u32 {
        32
    }

    const fn default_pool_shards() -> u32 {
        1
    }

    const fn default_reservation_seconds() -> u32 {
        60
    }

    /// Each way in by its name.
    pub fn actions(&self) -> impl Iterator<Item = (EntryKind, &Action)> {
        EntryKind::ALL.into_iter().map(|kind| (kind, self.action(kind)))
    }

    /// A way in.
    #[must_use]
    pub const fn action(&self, kind: EntryKind) -> &Action {
        match kind {
            EntryKind::Find => &self.actions.find,
            EntryKind::Join => &self.actions.join,
            EntryKind::Create => &self.actions.create,
        }
    }

    /// A lobby's capacity for joins.
    #[must_use]
    pub fn direct(&self) -> u32 {
        self.max_players_direct.unwrap_or(self.max_players)
    }

    /// The largest party that it seats together.
    #[must_use]
    pub fn largest_party(&self) -> u32 {
        self.party_size_max.unwrap_or(1)
    }

    /// A lobby's capacity for parties by a door with so many seats: a request's size counts for all doors.
    #[must_use]
    pub fn party_capacity(&self, of_door: u32, requested_max_players: Option<u32>) -> u32 {
        let for_parties = self.max_players_party.filter(|_| requested_max_players.is_none());
        for_parties.map_or(of_door, |for_parties| for_parties.max(of_door))
    }

    /// How far above the best latency a region may be whose lobbies a find joins before it creates one.
    #[must_use]
    pub fn latency_tolerance(&self) -> Duration {
        Duration::from_millis(self.latency_tolerance.unwrap_or(LATENCY_TOLERANCE_DEFAULT).into())
    }

    /// How far above the best latency a region may be in which a find creates a lobby.
    #[must_use]
    pub fn latency_max(&self) -> Duration {
        Duration::from_millis(self.latency_max.unwrap_or(LATENCY_ABOVE_BEST_DEFAULT).into())
    }

    /// How long a seat waits for its player.
    #[must_use]
    pub const fn reservation(&self) -> Duration {
        Duration::from_secs(self.reservation_seconds as u64)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

const fn yes() -> bool {
    true
}

/// The keys of a site at a captcha provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptchaKeys {
    /// The key for web pages.
    pub site_key: String,
    /// The key that authenticates the deployment at the provider.
    pub secret_key: Secret,
}

/// The providers of captchas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CaptchaProvider {
    /// hCaptcha.
    Hcaptcha,
    /// Cloudflare Turnstile.
    Turnstile,
}

impl CaptchaProvider {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// When players must pass a captcha, and of which provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptchaConfig {
    /// Requests that a client may make after each pass, at most 600.
    pub requests_before_reverify: u32,
    /// How long a pass counts, in milliseconds, at most 12 h.
    pub verification_ttl: u64,
    /// The site at hCaptcha; exactly one provider is given. A record with neither has a provider that only a
    /// later release knows, and no player passes.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub hcaptcha: Option<CaptchaKeys>,
    /// The site at Turnstile.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub turnstile: Option<CaptchaKeys>,
}

impl CaptchaConfig {
    /// The providers that are given, with their keys: one in each valid configuration.
    pub fn providers(&self) -> impl Iterator<Item = (CaptchaProvider, &CaptchaKeys)> {
        let hcaptcha = self.hcaptcha.iter().map(|keys| (CaptchaProvider::Hcaptcha, keys));
        hcaptcha.chain(self.turnstile.iter().map(|keys| (CaptchaProvider::Turnstile, keys)))
    }

    /// How long a pass counts.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        Duration::from_millis(self.verification_ttl)
    }
}

/// The matchmaking configuration that a version holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionConfig {
    /// The modes by name.
    #[serde(deserialize_with = "objects_by_name")]
    pub game_modes: BTreeMap<GameMode, GameModeConfig>,
    /// The captcha that players must pass; none when absent.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub captcha: Option<CaptchaConfig>,
    /// The game servers that Muster has started for it; the studio runs its own when absent.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServersConfig>,
}

/// A version of a game; immutable. `C` is its configuration, or the JSON that is stored of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version<C = VersionConfig> {
    /// Its game.
    pub game_id: GameId,
    /// Its identifier.
    pub version_id: VersionId,
    /// The name that people read.
    pub display_name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its configuration, without its secrets.
    pub config: C,
    /// Whether it has secrets, which are in a table of their own.
    #[serde(default)]
    pub has_secrets: bool,
}

/// A version as lists show it: small, whatever the size of its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedVersion {
    /// Its game.
    pub game_id: GameId,
    /// Its identifier.
    pub version_id: VersionId,
    /// The name that people read.
    pub display_name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The names of its modes.
    pub game_modes: Vec<GameMode>,
    /// When it was retired for deletion, so that no namespace can be set to it; absent unless it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
}

impl ListedVersion {
    /// The version as lists show it.
    #[must_use]
    pub fn of(version: &Version) -> Self {
        Self {
            game_id: version.game_id.clone(),
            version_id: version.version_id.clone(),
            display_name: version.display_name.clone(),
            created_at: version.created_at,
            game_modes: version.config.game_modes.keys().cloned().collect(),
            retired_at: None,
        }
    }
}

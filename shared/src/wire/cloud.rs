//! The cloud operations: versions, namespaces and their settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    base::{
        ambient::{Timestamp, time},
        json::objects_by_name,
    },
    models::{
        game::{Game, Region},
        ids::{GameId, NamespaceId, RegionId, VersionId},
        namespace::{CdnAuthType, CdnSettings, Deployment, Namespace},
        version::{self, ListedVersion, Version},
        violations::Violations,
    },
    wire::{ports::PortSpec, values::Empty},
};

/// Request of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateVersionRequest {
    /// The name that people read.
    pub display_name: String,
    /// The version's configuration.
    pub config: version::VersionConfig,
}

/// Response of versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateVersionResponse {
    /// The version.
    pub version_id: VersionId,
}

/// Request of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateNamespaceRequest {
    /// The name that people read.
    pub display_name: String,
    /// The version for it to run.
    pub version_id: String,
    /// Its name in addresses.
    pub name_id: String,
}

/// Response of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreateNamespaceResponse {
    /// The namespace.
    pub namespace_id: NamespaceId,
}

/// Request of namespaces/validate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ValidateNamespaceRequest {
    /// The name that people read.
    pub display_name: String,
    /// Its name in addresses.
    pub name_id: String,
}

/// Response of games: the game with its parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GetGameResponse {
    /// The game.
    pub game: GameFull,
}

/// A game with its namespaces, versions and regions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GameFull {
    /// Its identifier.
    pub game_id: GameId,
    /// Its name in addresses.
    pub name_id: String,
    /// The name that people read.
    pub display_name: String,
    /// When it was made.
    pub create_ts: String,
    /// Its namespaces, by name.
    pub namespaces: Vec<NamespaceSummary>,
    /// Its versions, newest first.
    pub versions: Vec<VersionSummary>,
    /// Its regions, by identifier.
    pub available_regions: Vec<RegionSummary>,
}

impl GameFull {
    /// The game on the wire.
    #[must_use]
    pub fn new(game: &Game, mut namespaces: Vec<Namespace>, mut versions: Vec<ListedVersion>) -> Self {
        namespaces.sort_by(|one, other| one.name_id.cmp(&other.name_id));
        versions.sort_by(|one, other| {
            (other.created_at, &other.version_id).cmp(&(one.created_at, &one.version_id))
        });
        Self {
            game_id: game.game_id.clone(),
            name_id: game.name_id.clone(),
            display_name: game.display_name.clone(),
            create_ts: time(game.created_at),
            namespaces: namespaces.iter().map(NamespaceSummary::new).collect(),
            versions: versions.into_iter().map(VersionSummary::from).collect(),
            available_regions: game.regions.iter().map(RegionSummary::new).collect(),
        }
    }
}

/// A region of a game.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionSummary {
    /// Its identifier.
    pub region_id: RegionId,
    /// The same, which clients of the service of decision 1 expect.
    pub region_name_id: RegionId,
    /// The name that players read.
    pub region_display_name: String,
    /// The name of the hosting provider there.
    pub provider_display_name: String,
}

impl RegionSummary {
    fn new((region_id, region): (&RegionId, &Region)) -> Self {
        Self {
            region_id: region_id.clone(),
            region_name_id: region_id.clone(),
            region_display_name: region.display_name.clone(),
            provider_display_name: region.provider_display_name.clone(),
        }
    }
}

/// A namespace without its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceSummary {
    /// Its identifier.
    pub namespace_id: NamespaceId,
    /// When it was made.
    pub create_ts: String,
    /// The name that people read.
    pub display_name: String,
    /// The version that it runs.
    pub version_id: VersionId,
    /// Its name in addresses.
    pub name_id: String,
}

impl NamespaceSummary {
    fn new(namespace: &Namespace) -> Self {
        Self {
            namespace_id: namespace.namespace_id.clone(),
            create_ts: time(namespace.created_at),
            display_name: namespace.display_name.clone(),
            version_id: namespace.version_id.clone(),
            name_id: namespace.name_id.clone(),
        }
    }
}

/// Response of namespaces/{namespace_id}.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GetNamespaceResponse {
    /// The namespace.
    pub namespace: NamespaceFull,
}

/// A namespace with its settings, without hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceFull {
    /// Its names and its version.
    #[serde(flatten)]
    pub summary: NamespaceSummary,
    /// Its settings.
    pub config: NamespaceConfig,
}

impl NamespaceFull {
    /// The namespace on the wire.
    #[must_use]
    pub fn new(namespace: &Namespace, cdn: CdnSettings) -> Self {
        let players = namespace.max_players_per_client;
        Self {
            summary: NamespaceSummary::new(namespace),
            config: NamespaceConfig {
                cdn: CdnConfig {
                    enable_domain_public_auth: namespace.enable_domain_public_auth,
                    domains: cdn.domains.into_iter().map(CdnDomain::new).collect(),
                    auth_type: namespace.cdn_auth_type,
                    auth_user_list: cdn.users.into_iter().map(|user| CdnAuthUser { user }).collect(),
                },
                matchmaker: MatchmakerConfig {
                    lobby_count_max: namespace.lobby_count_max,
                    max_players_per_client: players,
                    max_players_per_client_vpn: players,
                    max_players_per_client_proxy: players,
                    max_players_per_client_tor: players,
                    max_players_per_client_hosting: players,
                },
                kv: Empty {},
                identity: Empty {},
            },
        }
    }
}

/// The settings of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceConfig {
    /// Access to its pages.
    pub cdn: CdnConfig,
    /// How much it may hold.
    pub matchmaker: MatchmakerConfig,
    /// Empty; clients of the service of decision 1 expect it.
    pub kv: Empty,
    /// Empty; clients of the service of decision 1 expect it.
    pub identity: Empty,
}

/// Access to a namespace's pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CdnConfig {
    /// Whether pages of its domains need no token.
    pub enable_domain_public_auth: bool,
    /// Its domains, in order.
    pub domains: Vec<CdnDomain>,
    /// How its CDN authenticates.
    pub auth_type: CdnAuthType,
    /// Its CDN's users, in order.
    pub auth_user_list: Vec<CdnAuthUser>,
}

/// A user of a namespace's CDN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CdnAuthUser {
    /// The user's name.
    pub user: String,
}

/// A domain of a namespace. It is active at once: only the registration determines its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CdnDomain {
    /// Its host name.
    pub domain: String,
    /// When it was added.
    pub create_ts: String,
    /// `active`, always.
    pub verification_status: &'static str,
    /// None.
    pub verification_method: Empty,
    /// None.
    pub verification_errors: [String; 0],
}

impl CdnDomain {
    fn new((domain, created_at): (String, Timestamp)) -> Self {
        Self {
            domain,
            create_ts: time(created_at),
            verification_status: "active",
            verification_method: Empty {},
            verification_errors: [],
        }
    }
}

/// A namespace's limits. The API has a limit for each kind of network (decision 1), all with the same value
/// here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchmakerConfig {
    /// Lobbies that it may hold.
    pub lobby_count_max: u32,
    /// Seats that one client address may hold.
    pub max_players_per_client: u32,
    /// The same.
    pub max_players_per_client_vpn: u32,
    /// The same.
    pub max_players_per_client_proxy: u32,
    /// The same.
    pub max_players_per_client_tor: u32,
    /// The same.
    pub max_players_per_client_hosting: u32,
}

/// Request of domain-public-auth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetDomainPublicAuthRequest {
    /// Whether pages of the namespace's domains need no token.
    pub enabled: bool,
}

/// Request of domains.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AddDomainRequest {
    /// The host name.
    pub domain: String,
}

/// Response of version-history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionHistoryResponse {
    /// The changes, newest first.
    pub versions: Vec<VersionChange>,
}

/// One change of a namespace's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionChange {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// What it was changed to.
    pub version_id: VersionId,
    /// When it was deployed. Given as `anchor`, it requests the changes before this one.
    pub deploy_ts: String,
}

impl From<Deployment> for VersionChange {
    fn from(deployment: Deployment) -> Self {
        let Deployment { namespace_id, version_id, deployed_at } = deployment;
        Self { namespace_id, version_id, deploy_ts: time(deployed_at) }
    }
}

/// Response of versions/{version_id}.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GetVersionResponse {
    /// The version.
    pub version: VersionFull,
}

/// A version without its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionSummary {
    /// Its identifier.
    pub version_id: VersionId,
    /// When it was made.
    pub create_ts: String,
    /// The name that people read.
    pub display_name: String,
}

impl From<ListedVersion> for VersionSummary {
    fn from(version: ListedVersion) -> Self {
        let ListedVersion { version_id, display_name, created_at, .. } = version;
        Self { version_id, create_ts: time(created_at), display_name }
    }
}

/// A version with its configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionFull {
    /// Its name and age.
    #[serde(flatten)]
    pub summary: VersionSummary,
    /// Its configuration, with every default.
    pub config: version::VersionConfig,
}

impl From<Version> for VersionFull {
    fn from(version: Version) -> Self {
        Self { summary: ListedVersion::of(&version).into(), config: version.config }
    }
}

/// Request of tokens/development.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CreateDevelopmentTokenRequest {
    /// The developer's machine.
    pub hostname: String,
    /// Its ports by label.
    #[serde(deserialize_with = "objects_by_name")]
    pub ports: BTreeMap<String, PortSpec>,
}

/// Response of the operations that issue a token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TokenResponse {
    /// The token, which is never shown again.
    pub token: String,
}

/// Request of mm-config/validate and of mm-config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchmakerConfigRequest {
    /// Lobbies that the namespace may hold.
    pub lobby_count_max: u32,
    /// Seats that one client may hold.
    pub max_players: u32,
}

/// Response of every operation that validates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationResponse {
    /// The violations; empty when valid.
    pub errors: Vec<ValidationError>,
}

impl ValidationResponse {
    /// The response for `violations`.
    #[must_use]
    pub fn new(violations: Violations) -> Self {
        Self {
            errors: violations
                .into_iter()
                .map(|violation| ValidationError { path: violation.path })
                .collect(),
        }
    }
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// The parts of the path, the violation last.
    pub path: Vec<String>,
}

/// Request of cdn-auth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetCdnAuthTypeRequest {
    /// The new type of authentication.
    pub auth_type: CdnAuthType,
}

/// Request of auth-user.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct UpdateCdnAuthUserRequest {
    /// The user's name.
    pub user: String,
    /// A bcrypt hash.
    pub password: String,
}

/// Request of version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpdateNamespaceVersionRequest {
    /// The new version.
    pub version_id: String,
}

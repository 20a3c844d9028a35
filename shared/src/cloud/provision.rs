//! Creating a game, which only the operator does, by no HTTP operation.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{
    base::ambient::Ambient,
    cloud::issuing::issue_cloud_token,
    models::{
        errors::Error,
        game::{Game, Region},
        ids::{GameId, RegionId, VersionId},
        namespace::{CdnAuthType, Namespace, Revocations},
        rights::GameRight,
        tag_digests::TagKey,
        token::CloudToken,
        version::{ListedVersion, Version, VersionConfig},
        version_secrets::VersionSecrets,
        violations::Violations,
    },
    rules::{names::is_name_id, probe_url::is_probe_url, version_config::validate},
    store::{catalog::NameOutcome, client::Store},
};

/// Numbers that are tried for one version.
const NUMBER_TRIES: usize = 100;

/// A game to create.
#[derive(Clone, Debug)]
pub struct NewGame {
    /// Its name in addresses: 1 to 64 characters of a-z, 0-9 and inner hyphens.
    pub name_id: String,
    /// The name that people read.
    pub display_name: String,
    /// Its regions, at least one.
    pub regions: BTreeMap<RegionId, Region>,
    /// The display name of its first version.
    pub version_name: String,
    /// The configuration of its first version.
    pub config: VersionConfig,
    /// Its namespaces.
    pub namespaces: Vec<NewNamespace>,
}

/// A namespace to create.
#[derive(Clone, Debug)]
pub struct NewNamespace {
    /// Its name in addresses, unique in the game.
    pub name_id: String,
    /// The name that people read.
    pub display_name: String,
    /// Lobbies that it may hold.
    pub lobby_count_max: u32,
    /// Seats that one client address may hold.
    pub max_players_per_client: u32,
}

/// A created game.
#[derive(Clone, Debug)]
pub struct CreatedGame {
    /// The game.
    pub game: Game,
    /// Its first version.
    pub version: Version,
    /// Its namespaces, in the requested order.
    pub namespaces: Vec<Namespace>,
    /// Its cloud token, which is never shown again.
    pub cloud_token: CloudToken,
}

/// Why a game was not created.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// Another game has the name.
    #[error("there is already a game named `{0}`")]
    NameTaken(String),
    /// A name that is not valid in URLs, or is given twice.
    #[error("the name `{0}` must be given once, as 1 to 64 characters of a-z, 0-9 and inner hyphens")]
    InvalidName(String),
    /// A region with invalid coordinates, a UUID as name or an unusable probe, or no region.
    #[error(
        "a game needs regions with short names, not UUIDs, latitudes from -90 to 90, longitudes from -180 to 180, \
         and probes, if any, by https or wss, or by http or ws at localhost"
    )]
    InvalidRegions,
    /// A version configuration with violations.
    #[error("the version configuration is not valid: {0}")]
    InvalidConfig(Violations),
    /// The store failed.
    #[error("{}", .0.cause().unwrap_or("the store failed"))]
    Store(#[from] Error),
}

/// Creates a game with its regions, a first version, namespaces that run it and a cloud token.
///
/// It writes the game first. A crash afterwards leaves the game without some of the rest.
///
/// # Errors
/// [`ProvisionError`]; creates nothing unless everything is valid and the name is free.
pub async fn create_game(
    store: &Store,
    ambient: &Ambient,
    new: NewGame,
) -> Result<CreatedGame, ProvisionError> {
    check_names(&new)?;
    if new.regions.is_empty() || !new.regions.iter().all(|(region_id, region)| is_region(region_id, region)) {
        return Err(ProvisionError::InvalidRegions);
    }
    let violations = validate(&new.config, &new.regions);
    if !violations.is_empty() {
        return Err(ProvisionError::InvalidConfig(violations));
    }

    let now = ambient.now();
    let game = Game {
        game_id: ambient.uuid().into(),
        name_id: new.name_id,
        display_name: new.display_name,
        created_at: now,
        regions: new.regions,
    };
    if store.add_game(&game).await? == NameOutcome::Taken {
        return Err(ProvisionError::NameTaken(game.name_id));
    }
    let version = add_version(store, ambient, &game.game_id, new.version_name, new.config).await?;
    let listed = ListedVersion::of(&version);
    let mut namespaces = Vec::new();
    for namespace in new.namespaces {
        // The game is new, and its namespaces' names differ.
        namespaces.extend(add_namespace(store, ambient, namespace, &listed).await?);
    }
    let right = GameRight::of_operator(game.game_id.clone());
    let cloud_token = issue_cloud_token(store, ambient, &right).await?;
    Ok(CreatedGame { game, version, namespaces, cloud_token })
}

/// Whether a game may have a region: its coordinates and its probe are valid, and its identifier is not a
/// UUID, as the API promises.
#[must_use]
pub fn is_region(region_id: &RegionId, region: &Region) -> bool {
    let is_on_globe =
        (-90.0..=90.0).contains(&region.latitude) && (-180.0..=180.0).contains(&region.longitude);
    let is_probed = region.probe.as_deref().is_none_or(is_probe_url);
    is_on_globe && is_probed && Uuid::try_parse(region_id.as_str()).is_err()
}

/// Adds a namespace that runs `version`, under a checked name; `None` when another one of the game has it.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn add_namespace(
    store: &Store,
    ambient: &Ambient,
    new: NewNamespace,
    version: &ListedVersion,
) -> Result<Option<Namespace>, Error> {
    let namespace = new.into_namespace(version, ambient);
    let outcome = store.add_namespace(&namespace).await?;
    Ok((outcome == NameOutcome::Created).then_some(namespace))
}

/// Adds a checked version, with its secrets.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn add_version(
    store: &Store,
    ambient: &Ambient,
    game_id: &GameId,
    display_name: String,
    config: VersionConfig,
) -> Result<Version, Error> {
    let (version, secrets) = new_version(ambient, game_id, display_name, config);
    store.add_version(&version, secrets).await?;
    Ok(version)
}

/// Adds a checked version, with its secrets, under the next number that names no version of the game. Of
/// callers at the same time, each gets a number of its own.
///
/// # Errors
/// [`Error::Contention`] while others take every number; [`Error::Unavailable`], [`Error::Bug`].
pub async fn add_numbered_version(
    store: &Store,
    ambient: &Ambient,
    game_id: &GameId,
    config: VersionConfig,
) -> Result<Version, Error> {
    let listed = store.listed_versions(game_id).await?;
    let numbers = listed.iter().filter_map(|version| version.display_name.parse::<u64>().ok());
    let next = numbers.max().unwrap_or_default().saturating_add(1);
    // Numbers of deleted versions are not given again, so that there may be several to pass over.
    for number in (next..).take(NUMBER_TRIES) {
        let (version, secrets) = new_version(ambient, game_id, number.to_string(), config.clone());
        if store.add_numbered_version(&version, secrets, number).await? == NameOutcome::Created {
            return Ok(version);
        }
    }
    Err(Error::Contention)
}

fn new_version(
    ambient: &Ambient,
    game_id: &GameId,
    display_name: String,
    config: VersionConfig,
) -> (Version, VersionSecrets) {
    let secrets = VersionSecrets::of(&config);
    let version = Version {
        game_id: game_id.clone(),
        version_id: VersionId::from(ambient.uuid()),
        display_name,
        created_at: ambient.now(),
        config,
        has_secrets: !secrets.is_empty(),
    };
    (version, secrets)
}

impl NewNamespace {
    fn into_namespace(self, version: &ListedVersion, ambient: &Ambient) -> Namespace {
        let now = ambient.now();
        Namespace {
            game_id: version.game_id.clone(),
            namespace_id: ambient.uuid().into(),
            name_id: self.name_id,
            display_name: self.display_name,
            created_at: now,
            version_id: version.version_id.clone(),
            deployed_at: now,
            lobby_count_max: self.lobby_count_max,
            max_players_per_client: self.max_players_per_client,
            enable_domain_public_auth: true,
            cdn_auth_type: CdnAuthType::None,
            revocations: Revocations::default(),
            tag_key: TagKey::random(ambient),
        }
    }
}

fn check_names(new: &NewGame) -> Result<(), ProvisionError> {
    let invalid = |name: &String| Err(ProvisionError::InvalidName(name.clone()));
    if !is_name_id(&new.name_id) {
        return invalid(&new.name_id);
    }
    let mut seen = Vec::new();
    for NewNamespace { name_id, .. } in &new.namespaces {
        if !is_name_id(name_id) || seen.contains(&name_id) {
            return invalid(name_id);
        }
        seen.push(name_id);
    }
    Ok(())
}

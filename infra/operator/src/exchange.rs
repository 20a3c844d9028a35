//! A game as a file: a backup of its settings, and a way to move it to another deployment.
//!
//! The file has the settings that finds depend on: regions, versions, and namespaces with their limits and
//! domains. It has no secrets, tokens or password hashes: secrets are `null`, and you fill them in before the
//! import.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use shared::{
    base::ambient::Ambient,
    cloud::provision::{CreatedGame, NewGame, NewNamespace, add_version, create_game},
    models::{
        errors::Error,
        game::{Game, Region},
        ids::{RegionId, VersionId},
        namespace::{CdnAuthType, LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT},
        rights::{GameRight, NamespaceRight},
        version::VersionConfig,
        violations::{Violation, Violations},
    },
    rules::{matchmaker_config, names::display_name_violations, origin::OriginHost, version_config},
    store::{
        cdn::{DOMAINS_MAX, DomainOutcome},
        client::Store,
    },
};
use uuid::Uuid;

use crate::{
    config_file::{self, Kind},
    deployment::Deployment,
    error::{CommandError, Problem},
    lookup, mistakes,
    report::{Report, Reported},
};

/// The format of the file, which changes when an older command could not read it.
const FORM: u32 = 1;

/// The longest file that is read, in bytes: more than a hundred versions of the largest configuration.
const GAME_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A game.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GameFile<C> {
    /// [`FORM`].
    muster_game: u32,
    pub name_id: String,
    pub display_name: String,
    pub regions: BTreeMap<RegionId, Region>,
    /// The oldest first.
    pub versions: Vec<VersionEntry<C>>,
    pub namespaces: Vec<NamespaceEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VersionEntry<C> {
    /// Its identifier in this file; the import gives it another one.
    pub version_id: VersionId,
    pub display_name: String,
    /// The export has it as stored, including fields that only a later release knows. The import refuses
    /// those.
    pub config: C,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NamespaceEntry {
    pub name_id: String,
    pub display_name: String,
    pub version_id: VersionId,
    pub lobby_count_max: u32,
    pub max_players_per_client: u32,
    pub cdn_auth_type: CdnAuthType,
    pub enable_domain_public_auth: bool,
    pub domains: Vec<String>,
}

impl GameFile<VersionConfig> {
    /// The game `my-game`, whose namespace `prod` runs a version, with the limits of a new one.
    pub fn of_version(config: VersionConfig, regions: BTreeMap<RegionId, Region>) -> Self {
        let version_id = VersionId::from(Uuid::nil());
        let prod = NamespaceEntry {
            name_id: "prod".to_owned(),
            display_name: "Prod".to_owned(),
            version_id: version_id.clone(),
            lobby_count_max: LOBBY_COUNT_MAX_DEFAULT,
            max_players_per_client: MAX_PLAYERS_PER_CLIENT_DEFAULT,
            cdn_auth_type: CdnAuthType::None,
            enable_domain_public_auth: false,
            domains: Vec::new(),
        };
        Self {
            muster_game: FORM,
            name_id: "my-game".to_owned(),
            display_name: "My game".to_owned(),
            regions,
            versions: vec![VersionEntry { version_id, display_name: "1".to_owned(), config }],
            namespaces: vec![prod],
        }
    }
}

impl NamespaceEntry {
    /// The namespace to create.
    pub fn new_namespace(&self) -> NewNamespace {
        NewNamespace {
            name_id: self.name_id.clone(),
            display_name: self.display_name.clone(),
            lobby_count_max: self.lobby_count_max,
            max_players_per_client: self.max_players_per_client,
        }
    }

    /// Its valid domains, which are all in a checked file.
    pub fn hosts(&self) -> impl Iterator<Item = OriginHost> {
        self.domains.iter().filter_map(|domain| domain.parse().ok())
    }
}

/// The game as a file's text.
pub(crate) async fn export(name: &str, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, name).await?;
    let mut versions = store.versions_as_stored(&game.game_id).await?;
    versions
        .sort_by(|one, other| (one.created_at, &one.version_id).cmp(&(other.created_at, &other.version_id)));
    let right = GameRight::of_operator(game.game_id.clone());
    let mut namespaces = Vec::new();
    for namespace in store.namespaces(&game.game_id).await? {
        let right = right.clone().on_namespace(&namespace.namespace_id, store).await?;
        namespaces.push(NamespaceEntry {
            name_id: namespace.name_id,
            display_name: namespace.display_name,
            version_id: namespace.version_id,
            lobby_count_max: namespace.lobby_count_max,
            max_players_per_client: namespace.max_players_per_client,
            cdn_auth_type: namespace.cdn_auth_type,
            enable_domain_public_auth: namespace.enable_domain_public_auth,
            domains: store.cdn_settings(&right).await?.domains.into_keys().collect(),
        });
    }
    let Game { name_id, display_name, mut regions, .. } = game;
    // What it takes to start servers has secrets, and is of this deployment.
    regions.values_mut().for_each(|region| region.starter = None);
    let versions = versions.into_iter().map(|version| VersionEntry {
        version_id: version.version_id,
        display_name: version.display_name,
        config: version.config,
    });
    let versions = versions.collect();
    let file = GameFile { muster_game: FORM, name_id, display_name, regions, versions, namespaces };
    let json = serde_json::to_value(&file).unwrap_or_default();
    Ok(Report { text: serde_json::to_string_pretty(&file).unwrap_or_default(), json })
}

/// Creates the game of a file, under another name if one is given.
pub(crate) async fn import(path: PathBuf, name: Option<String>, deployment: &Deployment) -> Reported {
    let mut file = checked(&path, &text_of(&path)?)?;
    file.name_id = name.unwrap_or(file.name_id);
    let (created, taken_since) = create(file, &deployment.store, &deployment.ambient).await?;
    let mut report = Report::of_created(&created);
    if !taken_since.is_empty() {
        report.text += &format!("\nnot added, as others took them just now: {}", taken_since.join(", "));
        if let Some(fields) = report.json.as_object_mut() {
            fields.insert("domains_not_added".to_owned(), taken_since.into());
        }
    }
    Ok(report)
}

/// Creates the game of a checked file. Also returns the domains that other namespaces have taken since.
pub(crate) async fn create(
    file: GameFile<VersionConfig>,
    store: &Store,
    ambient: &Ambient,
) -> Result<(CreatedGame, Vec<String>), CommandError> {
    let GameFile { name_id, display_name, regions, versions, namespaces, .. } = file;
    // Before it creates anything, since it shows the cloud token only once.
    check_domains(&namespaces, store).await?;
    let mut versions = versions.into_iter();
    let Some(first) = versions.next() else { return Err(Error::VersionNotFound.into()) };
    let new = NewGame {
        name_id,
        display_name,
        regions,
        version_name: first.display_name,
        config: first.config,
        namespaces: namespaces.iter().map(NamespaceEntry::new_namespace).collect(),
    };
    let created = create_game(store, ambient, new).await?;
    let game_id = &created.game.game_id;
    let mut made = BTreeMap::from([(first.version_id, created.version.version_id.clone())]);
    for VersionEntry { version_id, display_name, config } in versions {
        let version = add_version(store, ambient, game_id, display_name, config).await?;
        made.insert(version_id, version.version_id);
    }
    let mut taken_since = Vec::new();
    for (entry, namespace) in namespaces.iter().zip(&created.namespaces) {
        let right = GameRight::of_operator(game_id.clone());
        let right = right.on_namespace(&namespace.namespace_id, store).await?;
        if let Some(version_id) = made.get(&entry.version_id).filter(|id| **id != namespace.version_id) {
            store.set_version(&right, version_id, ambient.now()).await?;
        }
        taken_since.extend(furnish(entry, &right, store, ambient).await?);
    }
    Ok((created, taken_since))
}

/// Refuses domains that a namespace of this deployment already has.
async fn check_domains(namespaces: &[NamespaceEntry], store: &Store) -> Result<(), CommandError> {
    for domain in namespaces.iter().flat_map(NamespaceEntry::hosts) {
        if store.domain_owner(&domain).await?.is_some() {
            return Err(CommandError::Refused(format!(
                "the domain {domain} is of another namespace of this deployment; remove it there or from the file"
            )));
        }
    }
    Ok(())
}

/// Gives a namespace the page settings and domains of its entry. Returns the domains that other namespaces
/// have.
pub(crate) async fn furnish(
    entry: &NamespaceEntry,
    right: &NamespaceRight,
    store: &Store,
    ambient: &Ambient,
) -> Result<Vec<String>, CommandError> {
    store.set_cdn_auth_type(right, entry.cdn_auth_type).await?;
    store.set_domain_public_auth(right, entry.enable_domain_public_auth).await?;
    let mut taken = Vec::new();
    for domain in entry.hosts() {
        if store.add_domain(right, &domain, ambient.now()).await? != DomainOutcome::Added {
            taken.push(domain.to_string());
        }
    }
    Ok(taken)
}

/// The text of a file.
pub(crate) fn text_of(path: &Path) -> Result<String, CommandError> {
    config_file::text_of(path, GAME_BYTES_MAX)
}

/// The game in the `text` of a file that follows every rule. (The creation checks the names of the game and
/// its namespaces.)
///
/// # Errors
/// [`CommandError::OtherFile`]; [`CommandError::BrokenRules`], with all mistakes of the file and their lines.
pub(crate) fn checked(path: &Path, text: &str) -> Result<GameFile<VersionConfig>, CommandError> {
    let other = |is: String| CommandError::OtherFile {
        path: path.to_owned(),
        is,
        wanted: "an exported game, as `muster game export` prints it",
    };
    match config_file::kind(text) {
        Kind::Version => {
            let readers = "which `muster version create` and `muster game create --config` read";
            return Err(other(format!("a version file, {readers}")));
        }
        Kind::Other(is) => return Err(other(is)),
        Kind::Game | Kind::Unknown => {}
    }
    let (file, mut found) = mistakes::read::<GameFile<VersionConfig>>(text);
    if let Some(file) = &file {
        found.extend(broken_rules(file, text));
    }
    match file {
        Some(file) if found.is_empty() => Ok(file),
        _ => Err(CommandError::BrokenRules { path: path.to_owned(), problems: found }),
    }
}

/// The rules that a file breaks, with their lines.
fn broken_rules(file: &GameFile<VersionConfig>, text: &str) -> Vec<Problem> {
    let line = |path: &[String]| {
        let number = |name: &str| file.namespaces.iter().position(|namespace| namespace.name_id == name);
        let mut parts = path.to_vec();
        if let [of, name, ..] = parts.as_mut_slice()
            && of == "namespaces"
            && let Some(number) = number(name)
        {
            *name = number.to_string();
        }
        mistakes::line(text, &parts)
    };
    let problem = |broken: Violation| Problem { line: line(&broken.path), at: broken.to_string() };
    problems(file).into_iter().map(problem).collect()
}

/// The problems of a file.
fn problems(file: &GameFile<VersionConfig>) -> Violations {
    let mut problems = Violations::default();
    if file.muster_game != FORM {
        problems
            .add(&["muster_game", "not-known"], format!("{FORM}; use the command that it was exported with"));
    }
    if file.versions.is_empty() {
        problems.add(&["versions", "missing"], "at least one");
    }
    for (number, version) in file.versions.iter().enumerate() {
        let number = number.to_string();
        let broken = version_config::validate(&version.config, &file.regions);
        problems.add_below(&["versions", &number, "config"], broken);
        problems.add_below(&["versions", &number], display_name_violations(&version.display_name));
    }
    problems.add_below(&[], display_name_violations(&file.display_name));
    for namespace in &file.namespaces {
        let NamespaceEntry { name_id, display_name, version_id, domains, .. } = namespace;
        let at = ["namespaces", name_id.as_str()];
        let broken = matchmaker_config::validate(namespace.lobby_count_max, namespace.max_players_per_client);
        problems.add_below(&at, broken);
        problems.add_below(&at, display_name_violations(display_name));
        let mut add = |path: &[&str], allowed: &str| problems.add(&[&at, path].concat(), allowed);
        if !file.versions.iter().any(|version| version.version_id == *version_id) {
            add(&["version_id", "not-found"], "the version_id of one of the file's versions");
        }
        if domains.len() > DOMAINS_MAX {
            add(&["domains", "too-many"], &format!("at most {DOMAINS_MAX}"));
        }
        for domain in domains.iter().filter(|domain| domain.parse::<OriginHost>().is_err()) {
            add(&["domains", domain, "invalid"], "a host name, without scheme, port and path");
        }
    }
    problems
}

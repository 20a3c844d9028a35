//! A game as a file: a backup of its settings, and a way to move it to another deployment.
//!
//! The file has the settings that finds depend on: regions, versions, and namespaces with their limits and
//! domains. It has no secrets, tokens or password hashes: secrets are `null`, and you fill them in before the
//! import.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use shared::{
    base::record::{Strict, UnknownField},
    cloud::provision::{CreatedGame, NewGame, NewNamespace, add_version, create_game},
    models::{
        game::{Game, Region},
        ids::{RegionId, VersionId},
        namespace::CdnAuthType,
        rights::GameRight,
        version::VersionConfig,
    },
    rules::{matchmaker_config, names::display_name_violations, origin::OriginHost, version_config},
    store::{
        cdn::{DOMAINS_MAX, DomainOutcome},
        client::Store,
    },
};

use crate::{CommandError, deployment::Deployment, error::Problem, lookup, report::Report};

/// The format of the file, which changes when an older command could not read it.
const FORM: u32 = 1;

/// A game.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GameFile<C> {
    /// [`FORM`].
    muster_game: u32,
    name_id: String,
    display_name: String,
    regions: BTreeMap<RegionId, Region>,
    /// The oldest first.
    versions: Vec<VersionEntry<C>>,
    namespaces: Vec<NamespaceEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionEntry<C> {
    /// Its identifier in this file; the import gives it another one.
    version_id: VersionId,
    display_name: String,
    /// The export has it as stored, including fields that only a later release knows. The import refuses
    /// those.
    config: C,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceEntry {
    name_id: String,
    display_name: String,
    version_id: VersionId,
    lobby_count_max: u32,
    max_players_per_client: u32,
    cdn_auth_type: CdnAuthType,
    enable_domain_public_auth: bool,
    domains: Vec<String>,
}

/// The game as a file's text.
pub(crate) async fn export(name: &str, deployment: &Deployment) -> Result<Report, CommandError> {
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
    let Game { name_id, display_name, regions, .. } = game;
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
pub(crate) async fn import(
    path: PathBuf,
    name: Option<String>,
    deployment: &Deployment,
) -> Result<Report, CommandError> {
    let file = read(&path)?;
    let broken = |problems: Vec<String>| {
        let problems = problems.into_iter().map(|at| Problem { line: None, at }).collect();
        CommandError::BrokenRules { path: path.clone(), problems }
    };
    let problems = problems(&file);
    if !problems.is_empty() {
        return Err(broken(problems));
    }
    let GameFile { name_id, display_name, regions, versions, namespaces, .. } = file;
    let Deployment { store, ambient, .. } = deployment;
    // Before it creates anything, since it shows the cloud token only once.
    check_domains(&namespaces, store).await?;
    let mut versions = versions.into_iter();
    let Some(first) = versions.next() else {
        return Err(broken(vec!["versions/missing".to_owned()]));
    };
    let new_namespaces = namespaces.iter().map(|namespace| NewNamespace {
        name_id: namespace.name_id.clone(),
        display_name: namespace.display_name.clone(),
        lobby_count_max: namespace.lobby_count_max,
        max_players_per_client: namespace.max_players_per_client,
    });
    let new = NewGame {
        name_id: name.unwrap_or(name_id),
        display_name,
        regions,
        version_name: first.display_name,
        config: first.config,
        namespaces: new_namespaces.collect(),
    };
    let created = create_game(store, ambient, new).await?;
    let game_id = &created.game.game_id;
    let mut made = BTreeMap::from([(first.version_id, created.version.version_id.clone())]);
    for VersionEntry { version_id, display_name, config } in versions {
        let version = add_version(store, ambient, game_id, display_name, config).await?;
        made.insert(version_id, version.version_id);
    }
    let taken_since = furnish(&namespaces, &created, &made, deployment).await?;
    let mut report = Report::of_created(&created);
    if !taken_since.is_empty() {
        report.text += &format!("\nnot added, as others took them just now: {}", taken_since.join(", "));
        if let Some(fields) = report.json.as_object_mut() {
            fields.insert("domains_not_added".to_owned(), taken_since.into());
        }
    }
    Ok(report)
}

/// Refuses domains that a namespace of this deployment already has.
async fn check_domains(namespaces: &[NamespaceEntry], store: &Store) -> Result<(), CommandError> {
    for domain in namespaces.iter().flat_map(|namespace| &namespace.domains) {
        let Ok(host) = domain.parse::<OriginHost>() else { continue };
        if store.domain_owner(&host).await?.is_some() {
            return Err(CommandError::Refused(format!(
                "the domain {domain} is of another namespace of this deployment; remove it there or from the file"
            )));
        }
    }
    Ok(())
}

/// Gives new namespaces the versions, page settings and domains of their entries. Returns the domains that
/// other namespaces have taken since the check.
///
/// `made` has the new version of each version of the file.
async fn furnish(
    namespaces: &[NamespaceEntry],
    created: &CreatedGame,
    made: &BTreeMap<VersionId, VersionId>,
    deployment: &Deployment,
) -> Result<Vec<String>, CommandError> {
    let Deployment { store, ambient, .. } = deployment;
    let right = GameRight::of_operator(created.game.game_id.clone());
    let mut taken_since = Vec::new();
    for (entry, namespace) in namespaces.iter().zip(&created.namespaces) {
        let right = right.clone().on_namespace(&namespace.namespace_id, store).await?;
        let version_id = made.get(&entry.version_id).filter(|id| **id != namespace.version_id);
        if let Some(version_id) = version_id {
            store.set_version(&right, version_id, ambient.now()).await?;
        }
        store.set_cdn_auth_type(&right, entry.cdn_auth_type).await?;
        store.set_domain_public_auth(&right, entry.enable_domain_public_auth).await?;
        for domain in &entry.domains {
            let Ok(domain) = domain.parse::<OriginHost>() else { continue };
            if store.add_domain(&right, &domain, ambient.now()).await? != DomainOutcome::Added {
                taken_since.push(domain.to_string());
            }
        }
    }
    Ok(taken_since)
}

fn read(path: &Path) -> Result<GameFile<VersionConfig>, CommandError> {
    let text = fs::read_to_string(path)
        .map_err(|error| CommandError::UnreadableFile { path: path.to_owned(), error })?;
    let mut json = serde_json::Deserializer::from_str(&text);
    let invalid =
        |at: String, problem: String| CommandError::InvalidGameFile { path: path.to_owned(), at, problem };
    let file: GameFile<Strict<VersionConfig>> = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(error.path().to_string(), error.inner().to_string()))?;
    json.end().map_err(|error| invalid(".".to_owned(), error.to_string()))?;
    if file.muster_game != FORM {
        let problem = format!("this command reads the form {FORM}; use the one that it was exported with");
        return Err(invalid("muster_game".to_owned(), problem));
    }
    let versions = file.versions.into_iter().enumerate().map(|(number, version)| {
        let VersionEntry { version_id, display_name, config } = version;
        let config = config.known().map_err(|UnknownField(field)| {
            let problem = "no configuration has this field; a later release may";
            invalid(format!("versions[{number}].config.{field}"), problem.to_owned())
        })?;
        Ok(VersionEntry { version_id, display_name, config })
    });
    let versions = versions.collect::<Result<_, CommandError>>()?;
    let GameFile { muster_game, name_id, display_name, regions, namespaces, .. } = file;
    Ok(GameFile { muster_game, name_id, display_name, regions, versions, namespaces })
}

/// The problems of a file, each with its path. The creation checks the names of the game and its namespaces.
fn problems(file: &GameFile<VersionConfig>) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, version) in file.versions.iter().enumerate() {
        let broken = version_config::validate(&version.config, &file.regions);
        problems.extend(broken.joined().map(|at| format!("versions/{number}/config/{at}")));
        let broken = display_name_violations(&version.display_name);
        problems.extend(broken.joined().map(|at| format!("versions/{number}/{at}")));
    }
    problems.extend(display_name_violations(&file.display_name).joined());
    for namespace in &file.namespaces {
        let NamespaceEntry { name_id, display_name, version_id, domains, .. } = namespace;
        let broken = matchmaker_config::validate(namespace.lobby_count_max, namespace.max_players_per_client);
        let unnamed = display_name_violations(display_name);
        let broken = broken.joined().chain(unnamed.joined());
        problems.extend(broken.map(|at| format!("namespaces/{name_id}/{at}")));
        if !file.versions.iter().any(|version| version.version_id == *version_id) {
            problems.push(format!("namespaces/{name_id}/version_id/not-found"));
        }
        if domains.len() > DOMAINS_MAX {
            problems.push(format!("namespaces/{name_id}/domains/too-many"));
        }
        let invalid = domains.iter().filter(|domain| domain.parse::<OriginHost>().is_err());
        problems.extend(invalid.map(|domain| format!("namespaces/{name_id}/domains/{domain}/invalid")));
    }
    problems
}

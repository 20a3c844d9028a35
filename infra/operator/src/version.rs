//! Versions of a game, and which of them a namespace runs.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde_json::{Map, Value, json};
use shared::{
    base::ambient::{Timestamp, time},
    cloud::{
        provision::{add_numbered_version, add_version},
        retirement::{Deletion, delete_version},
    },
    models::{
        errors::Error,
        game::{Game, Region},
        version::ListedVersion,
    },
    rules::{names::display_name_violations, version_config},
    store::deployments::VersionOutcome,
    wire::{VersionChange, VersionFull},
};

use crate::{
    config_file::{self, ConfigFile, ConfigSource},
    consent::Consent,
    deployment::Deployment,
    error::CommandError,
    lookup::{self, NamespaceName, OfGame},
    report::{Report, Reported},
};

/// The API's document, from which the schema of version configurations comes.
const OPENAPI: &str = include_str!("../../openapi.json");

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Creates a version from a file. No namespace runs it yet.
    Create {
        /// The game.
        game: String,
        /// The file with the version's configuration.
        file: ConfigSource,
        /// The version's display name; by default the next number.
        #[arg(long)]
        name: Option<String>,
        /// Also set this namespace to it; repeat for more.
        #[arg(long = "set", value_name = "GAME/NAMESPACE")]
        set: Vec<NamespaceName>,
    },
    /// Lists the versions of a game, newest first.
    List(OfGame),
    /// Shows a version with its configuration.
    Show {
        /// The game.
        game: String,
        /// The version, by its identifier or its name.
        version: String,
    },
    /// Sets a namespace's version. From the next find on, only its lobbies match.
    Set {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The version, by its identifier or its name.
        version: String,
    },
    /// Deletes a version that no namespace runs and no lobby has, with its secrets.
    ///
    /// The command first retires it, so that no namespace can be set to it. Repeat the command until the
    /// version is deleted.
    Delete {
        /// The game.
        game: String,
        /// The version, by its identifier or its name.
        version: String,
        /// Keep the version: namespaces can be set to it again.
        #[arg(long)]
        cancel: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Lists the versions that a namespace ran, newest first.
    History {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The most to list, 1 to 32.
        #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=32))]
        limit: u16,
    },
    /// Reports the problems of a file, by line and path.
    Validate {
        /// The file with a version's configuration.
        file: ConfigSource,
        /// The game whose regions it may use; without one, all regions are accepted.
        #[arg(long)]
        game: Option<String>,
    },
    /// Prints the JSON Schema of such files, for editors.
    Schema,
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::Create { game, file, name, set } => create(game, file, name, set, deployment).await,
        Action::List(of) => list(of, deployment).await,
        Action::Show { game, version } => show(game, version, deployment).await,
        Action::Set { namespace, version } => set(namespace, version, deployment).await,
        Action::Delete { game, version, cancel, consent } => {
            delete(game, version, cancel, consent, deployment).await
        }
        Action::History { namespace, limit } => history(namespace, limit, deployment).await,
        Action::Validate { file, game: Some(game) } => validate_in_game(file, game, deployment).await,
        Action::Validate { file, game: None } => validate(&file),
        Action::Schema => Ok(schema()),
    }
}

async fn create(
    game: String,
    file: ConfigSource,
    name: Option<String>,
    set: Vec<NamespaceName>,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    let read = config_file::read(&file)?;
    check(&read, &game.regions)?;
    if name.as_ref().is_some_and(|name| !display_name_violations(name).is_empty()) {
        let form = "a version's name has 1 to 128 characters, no control characters among them";
        return Err(CommandError::Refused(form.to_owned()));
    }
    // Checks that all exist before it creates anything.
    let mut rights = Vec::new();
    for namespace in &set {
        let (owner, right) = lookup::namespace(store, namespace).await?;
        if owner.game_id != game.game_id {
            let name = &namespace.game;
            return Err(CommandError::Refused(format!(
                "the version is one of {}, not of {name}",
                game.name_id
            )));
        }
        rights.push(right);
    }
    let (ambient, game_id) = (&deployment.ambient, &game.game_id);
    let version = match name {
        Some(name) => add_version(store, ambient, game_id, name, read.config).await?,
        None => add_numbered_version(store, ambient, game_id, read.config).await?,
    };
    for right in &rights {
        store.set_version(right, &version.version_id, ambient.now()).await?;
    }
    let lines = vec![("version", format!("{}  {}", version.version_id, version.display_name))];
    Ok(Report::list(lines, json!({ "version_id": version.version_id })))
}

async fn list(of: OfGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &of.game).await?;
    let mut versions = store.listed_versions(&game.game_id).await?;
    versions
        .sort_by(|one, other| (other.created_at, &other.version_id).cmp(&(one.created_at, &one.version_id)));
    let namespaces = store.namespaces(&game.game_id).await?;
    let run_by = |version: &ListedVersion| {
        let running = namespaces.iter().filter(|namespace| namespace.version_id == version.version_id);
        running.map(|namespace| namespace.name_id.clone()).collect::<Vec<_>>()
    };
    Ok(Report::of_each("versions", ["name", "id", "created", "modes", "run by"], versions, |version| {
        let (created, run_by) = (time(version.created_at), run_by(&version));
        let ListedVersion { version_id, display_name, game_modes, retired_at, .. } = version;
        let json = json!({ "version_id": version_id, "display_name": display_name, "create_ts": created,
                           "namespaces": run_by, "retired": retired_at.is_some() });
        let modes: Vec<_> = game_modes.iter().map(ToString::to_string).collect();
        let run_by = if retired_at.is_some() { "retired".to_owned() } else { run_by.join(",") };
        ([display_name, version_id.to_string(), created, modes.join(","), run_by], json)
    }))
}

async fn show(game: String, version: String, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    let named = lookup::version(store, &game, &version).await?.version_id;
    let whole = store.version(&game.game_id, &named).await?.ok_or(Error::VersionNotFound)?;
    let full = VersionFull::from(whole);
    let text = serde_json::to_string_pretty(&full.config).unwrap_or_default();
    Ok(Report { text, json: json!({ "version": full }) })
}

async fn set(namespace: NamespaceName, version: String, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (game, right) = lookup::namespace(store, &namespace).await?;
    let version = lookup::version(store, &game, &version).await?;
    let outcome = store.set_version(&right, &version.version_id, deployment.ambient.now()).await?;
    if outcome == VersionOutcome::UnknownVersion {
        return Err(CommandError::Refused(format!(
            "{} is retired; `muster version delete --cancel` keeps it",
            version.version_id
        )));
    }
    let is_new = outcome == VersionOutcome::Changed;
    let says = if is_new { "runs" } else { "ran it already:" };
    let text =
        format!("{} {says} {}  {}", right.namespace().name_id, version.version_id, version.display_name);
    Ok(Report { text, json: json!({ "version_id": version.version_id, "changed": is_new }) })
}

/// Deletes a version, or cancels its deletion.
async fn delete(
    game: String,
    version: String,
    cancel: bool,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    let version = lookup::version(store, &game, &version).await?;
    if cancel {
        return keep(deployment, &version).await;
    }
    let loss = format!("deletes the version {} of {} with its secrets", version.display_name, game.name_id);
    consent.to(&loss, deployment)?;
    try_to_delete(deployment, &game, &version).await
}

async fn history(namespace: NamespaceName, limit: u16, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    let history = store.version_history(right.namespace_id(), Timestamp::NEVER, limit).await?;
    let both =
        |change: VersionChange| ([change.deploy_ts.clone(), change.version_id.to_string()], json!(change));
    Ok(Report::of_each("versions", ["since", "version"], history.into_iter().map(Into::into), both))
}

/// Checks a file by the regions of a game.
async fn validate_in_game(file: ConfigSource, game: String, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    check(&config_file::read(&file)?, &lookup::game(store, &game).await?.regions)?;
    Ok(valid())
}

async fn keep(deployment: &Deployment, version: &ListedVersion) -> Reported {
    let ListedVersion { game_id, version_id, display_name, .. } = version;
    if !deployment.store.keep_version(game_id, version_id).await? {
        return Err(Error::VersionNotFound.into());
    }
    let text = format!("{version_id}  {display_name} stays");
    Ok(Report { text, json: json!({ "version_id": version_id, "deleted": false }) })
}

/// Deletes a version, or reports why it cannot yet.
async fn try_to_delete(deployment: &Deployment, game: &Game, version: &ListedVersion) -> Reported {
    let ListedVersion { version_id, display_name, .. } = version;
    let named = format!("{version_id}  {display_name}");
    let obstacle = match delete_version(&deployment.store, game, version_id, deployment.ambient.now()).await?
    {
        Deletion::Deleted => {
            let json = json!({ "version_id": version_id, "deleted": true });
            return Ok(Report { text: format!("{named} is deleted"), json });
        }
        Deletion::Run(namespaces) => {
            format!("{} runs it: set another version first", namespaces.join(", "))
        }
        Deletion::Remembered(until) => {
            format!(
                "it is retired, and functions may remember it: repeat the command at {} or later",
                time(until)
            )
        }
        Deletion::Played(namespaces) => {
            let lobbies = namespaces.iter().map(|(namespace, count)| format!("{namespace} has {count}"));
            let lobbies = lobbies.collect::<Vec<_>>().join(", ");
            format!(
                "it is retired, and lobbies of it live: {lobbies}; repeat the command when they have ended"
            )
        }
        Deletion::Served(namespaces) => {
            let servers = namespaces.iter().map(|(namespace, count)| format!("{namespace} has {count}"));
            let servers = servers.collect::<Vec<_>>().join(", ");
            format!(
                "it is retired, and game servers that were started for it run: {servers}; repeat the command when \
                 they have ended"
            )
        }
        Deletion::Kept => "another command canceled its deletion just now".to_owned(),
    };
    Err(CommandError::Refused(format!("{named} is not deleted yet: {obstacle}")))
}

/// Checks a file without a deployment, and accepts all regions.
pub(crate) fn validate(file: &ConfigSource) -> Reported {
    let read = config_file::read(file)?;
    check(&read, &config_file::named_regions(&read.config))?;
    Ok(valid())
}

fn check(
    read: &ConfigFile,
    regions: &BTreeMap<shared::models::ids::RegionId, Region>,
) -> Result<(), CommandError> {
    let violations = version_config::validate(&read.config, regions);
    if violations.is_empty() { Ok(()) } else { Err(read.broken(violations)) }
}

fn valid() -> Report {
    Report { text: "valid".to_owned(), json: json!({ "valid": true }) }
}

/// The JSON Schema of version configurations, from the API's document.
pub(crate) fn schema() -> Report {
    let document: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    let components = document.pointer("/components/schemas").and_then(Value::as_object);
    let mut definitions = Map::new();
    let resolved =
        components.and_then(|components| definition(components, "VersionConfig", &mut definitions));
    let mut schema = Map::from_iter([
        ("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema")),
        ("title".to_owned(), json!("A version of a game")),
    ]);
    if let Some(Value::Object(fields)) = resolved {
        schema.extend(fields);
    }
    schema.insert("$defs".to_owned(), definitions.into());
    let json = Value::Object(schema);
    Report { text: serde_json::to_string_pretty(&json).unwrap_or_default(), json }
}

/// A component whose references point into `definitions`, to which it adds their targets.
fn definition(
    components: &Map<String, Value>,
    name: &str,
    definitions: &mut Map<String, Value>,
) -> Option<Value> {
    let mut schema = components.get(name)?.clone();
    resolve(components, &mut schema, definitions);
    Some(schema)
}

/// Points references into `definitions`. Objects allow no other properties, because a version with others is
/// refused.
fn resolve(components: &Map<String, Value>, schema: &mut Value, definitions: &mut Map<String, Value>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
                *reference = format!("#/$defs/{name}");
                if !definitions.contains_key(&name) {
                    definitions.insert(name.clone(), Value::Null);
                    if let Some(resolved) = definition(components, &name, definitions) {
                        definitions.insert(name, resolved);
                    }
                }
            }
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(|field| resolve(components, field, definitions));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| resolve(components, item, definitions)),
        _ => {}
    }
}

//! Namespaces and their matchmaker settings.

use clap::{Args, Subcommand};
use serde_json::json;
use shared::{
    base::ambient::time,
    cloud::provision::{NewNamespace, add_namespace},
    models::{
        errors::Error,
        namespace::{LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT, Namespace},
    },
    rules::{matchmaker_config, names::namespace_violations},
    wire::NamespaceFull,
};

use crate::{
    deployment::Deployment,
    error::CommandError,
    lookup::{self, NamespaceName, OfGame, OfNamespace},
    report::{Report, Reported},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Creates a namespace that runs a version.
    Create {
        /// The new namespace: its name in addresses has a-z, 0-9 and inner hyphens.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// Its version, by identifier or name.
        #[arg(long)]
        version: String,
        /// The name that people read; the name in addresses when absent.
        #[arg(long)]
        display_name: Option<String>,
    },
    /// Lists the namespaces of a game.
    List(OfGame),
    /// Shows a namespace and its settings.
    Show(OfNamespace),
}

/// The limits of a namespace. A limit that is not given stays.
#[derive(Debug, Args)]
pub(crate) struct MatchmakerConfig {
    /// The namespace.
    #[arg(value_name = "GAME/NAMESPACE")]
    pub namespace: NamespaceName,
    /// Lobbies that it may hold, 1 to 32767. A lower limit ends none.
    #[arg(long)]
    lobby_count_max: Option<u32>,
    /// Seats that one IP address may hold (`max_players` in the API's settings); above 1000 there is no
    /// limit.
    #[arg(long)]
    max_players_per_client: Option<u32>,
}

impl MatchmakerConfig {
    /// What it changes, in words; `None` when it only shows the limits.
    pub fn changes(&self) -> Option<String> {
        let Self { namespace, lobby_count_max: lobbies, max_players_per_client: seats } = self;
        let lobbies = lobbies.map(|lobbies| format!(" --lobby-count-max {lobbies}"));
        let seats = seats.map(|seats| format!(" --max-players-per-client {seats}"));
        let changes: String = lobbies.into_iter().chain(seats).collect();
        (!changes.is_empty()).then(|| format!("{namespace}{changes}"))
    }
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::Create { namespace, version, display_name } => {
            create(namespace, version, display_name, deployment).await
        }
        Action::List(of) => list(of, deployment).await,
        Action::Show(of) => show(of, deployment).await,
    }
}

async fn create(
    namespace: NamespaceName,
    version: String,
    display_name: Option<String>,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &namespace.game).await?;
    let version = lookup::version(store, &game, &version).await?;
    let name_id = namespace.namespace;
    let display_name = display_name.unwrap_or_else(|| name_id.clone());
    let violations = namespace_violations(&display_name, &name_id);
    if !violations.is_empty() {
        return Err(Error::Validation(violations).into());
    }
    let new = NewNamespace {
        name_id: name_id.clone(),
        display_name,
        lobby_count_max: LOBBY_COUNT_MAX_DEFAULT,
        max_players_per_client: MAX_PLAYERS_PER_CLIENT_DEFAULT,
    };
    let made = add_namespace(store, &deployment.ambient, new, &version).await?;
    let taken = || CommandError::Refused(format!("{} has a namespace `{name_id}` already", game.name_id));
    let made = made.ok_or_else(taken)?;
    let lines = vec![("namespace", format!("{}  {}", made.namespace_id, made.name_id))];
    Ok(Report::list(lines, json!({ "namespace_id": made.namespace_id })))
}

async fn list(of: OfGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &of.game).await?;
    let versions = store.listed_versions(&game.game_id).await?;
    let mut namespaces = store.namespaces(&game.game_id).await?;
    namespaces.sort_by(|one, other| one.name_id.cmp(&other.name_id));
    Ok(Report::of_each("namespaces", ["name", "id", "version", "since"], namespaces, |namespace| {
        let Namespace { namespace_id, name_id, display_name, version_id, deployed_at, .. } = namespace;
        let json = json!({ "namespace_id": namespace_id, "name_id": name_id, "display_name": display_name,
                           "version_id": version_id });
        let version = versions.iter().find(|version| version.version_id == version_id);
        let version = version.map(|version| version.display_name.clone()).unwrap_or_default();
        ([name_id, namespace_id.to_string(), version, time(deployed_at)], json)
    }))
}

async fn show(of: OfNamespace, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &of.namespace).await?;
    let cdn = store.cdn_settings(&right).await?;
    let full = NamespaceFull::new(right.namespace(), cdn);
    let (summary, matchmaker, cdn) = (&full.summary, &full.config.matchmaker, &full.config.cdn);
    let domains: Vec<_> = cdn.domains.iter().map(|domain| domain.domain.as_str()).collect();
    let users: Vec<_> = cdn.auth_user_list.iter().map(|user| user.user.as_str()).collect();
    let lines = vec![
        ("namespace", format!("{}  {}", summary.namespace_id, summary.name_id)),
        ("name", summary.display_name.clone()),
        ("created", summary.create_ts.clone()),
        ("version", summary.version_id.to_string()),
        ("lobbies at most", matchmaker.lobby_count_max.to_string()),
        ("seats a client", matchmaker.max_players_per_client.to_string()),
        ("domains", domains.join(" ")),
        ("pages without token", if cdn.enable_domain_public_auth { "yes" } else { "no" }.to_owned()),
        ("cdn authentication", format!("{:?}", cdn.auth_type).to_lowercase()),
        ("cdn users", users.join(" ")),
    ];
    let json = json!({ "namespace": full });
    Ok(Report::list(lines, json))
}

pub(crate) async fn configure(config: MatchmakerConfig, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &config.namespace).await?;
    let before = right.namespace();
    let lobbies = config.lobby_count_max.unwrap_or(before.lobby_count_max);
    let players = config.max_players_per_client.unwrap_or(before.max_players_per_client);
    let violations = matchmaker_config::validate(lobbies, players);
    if !violations.is_empty() {
        return Err(Error::Validation(violations).into());
    }
    if config.lobby_count_max.is_some() || config.max_players_per_client.is_some() {
        store.set_matchmaker_config(&right, lobbies, players).await?;
    }
    let lines = vec![("lobbies at most", lobbies.to_string()), ("seats a client", players.to_string())];
    Ok(Report::list(lines, json!({ "lobby_count_max": lobbies, "max_players_per_client": players })))
}

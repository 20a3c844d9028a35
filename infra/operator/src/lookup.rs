//! Finding games, namespaces and versions by name or identifier.

use std::{collections::HashSet, fmt, str::FromStr, time::Duration};

use clap::Args;
use shared::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        game::Game,
        ids::NamespaceId,
        namespace::Namespace,
        rights::{GameRight, NamespaceRight},
        server::Server,
        version::ListedVersion,
    },
    rules::names::is_name_id,
    store::{
        client::Store,
        listing::{servers_let_go_of, servers_of},
    },
};

use crate::error::CommandError;

/// How long a game server that fell silent without lobbies is listed.
const SILENT_FOR: Duration = Duration::from_secs(24 * 3_600);

/// A namespace in a command: `GAME/NAMESPACE`, each by name or identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceName {
    pub game: String,
    pub namespace: String,
}

impl FromStr for NamespaceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.split_once('/') {
            Some((game, namespace))
                if !game.is_empty() && !namespace.is_empty() && !namespace.contains('/') =>
            {
                Ok(Self { game: game.to_owned(), namespace: namespace.to_owned() })
            }
            _ => Err("write a namespace as GAME/NAMESPACE, such as my-game/prod"),
        }
    }
}

impl fmt::Display for NamespaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.game, self.namespace)
    }
}

/// What a command on a game alone names.
#[derive(Clone, Debug, Args)]
pub(crate) struct OfGame {
    /// The game.
    pub game: String,
}

/// What a command on a namespace alone names.
#[derive(Clone, Debug, Args)]
pub(crate) struct OfNamespace {
    /// The namespace.
    #[arg(value_name = "GAME/NAMESPACE")]
    pub namespace: NamespaceName,
}

/// The error of a name that nothing has; the command `muster {list}` lists those there are.
pub(crate) fn unknown(what: &'static str, name: &str, list: &str) -> CommandError {
    let hint = format!("`muster {list}` lists those there are");
    CommandError::Unknown { what, name: name.to_owned(), hint }
}

/// The game of this name or identifier.
pub(crate) async fn game(store: &Store, name: &str) -> Result<Game, CommandError> {
    // No other text is the name of a game, and DynamoDB refuses a key of any length.
    if is_name_id(name)
        && let Some(game) = store.game_by_name(name).await?
    {
        return Ok(game);
    }
    let game = match name.parse() {
        Ok(id) => store.game(&id).await?,
        Err(_) => None,
    };
    game.ok_or_else(|| unknown("game", name, "game list"))
}

/// The game servers of a namespace, and those that fell silent without lobbies in the last day, which finds
/// no longer read.
pub(crate) async fn servers_with_silent(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
    now: Timestamp,
) -> Result<Vec<Server>, Error> {
    let mut servers = servers_of(store, game, namespace_id).await?;
    servers.extend(servers_let_go_of(store, game, namespace_id, now.before(SILENT_FOR)).await?);
    // One that a find lets go between the two reads is in both.
    let mut known = HashSet::new();
    servers.retain(|server| known.insert(server.server.clone()));
    Ok(servers)
}

/// The game and the namespace with this identifier, which a lobby names.
pub(crate) async fn owner(
    store: &Store,
    namespace_id: &NamespaceId,
) -> Result<Option<(Game, Namespace)>, CommandError> {
    for game in store.games().await? {
        if let Some(namespace) = store.namespace(&game.game_id, namespace_id).await? {
            return Ok(Some((game, namespace)));
        }
    }
    Ok(None)
}

/// The game, and the operator's right to the namespace.
pub(crate) async fn namespace(
    store: &Store,
    name: &NamespaceName,
) -> Result<(Game, NamespaceRight), CommandError> {
    let game = game(store, &name.game).await?;
    let all = store.namespaces(&game.game_id).await?;
    let is_named = |id: &str, name_id: &str| id == name.namespace || name_id == name.namespace;
    let found =
        all.into_iter().find(|namespace| is_named(namespace.namespace_id.as_str(), &namespace.name_id));
    let list = || format!("namespace list {}", name.game);
    let found = found.ok_or_else(|| unknown("namespace", &name.namespace, &list()))?;
    let right = GameRight::of_operator(game.game_id.clone());
    let right = right.on_namespace(&found.namespace_id, store).await?;
    Ok((game, right))
}

/// The version of this identifier, or the only one of this name.
pub(crate) async fn version(store: &Store, game: &Game, name: &str) -> Result<ListedVersion, CommandError> {
    let all = store.listed_versions(&game.game_id).await?;
    if let Some(version) = all.iter().find(|version| version.version_id.as_str() == name) {
        return Ok(version.clone());
    }
    let mut named = all.into_iter().filter(|version| version.display_name == name);
    let list = format!("version list {}", game.name_id);
    match (named.next(), named.next()) {
        (Some(version), None) => Ok(version),
        (Some(_), Some(_)) => Err(CommandError::Refused(format!(
            "several versions are called `{name}`: name it by its identifier; `muster {list}` lists those there are"
        ))),
        (None, _) => Err(unknown("version", name, &list)),
    }
}

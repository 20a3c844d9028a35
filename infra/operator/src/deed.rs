//! What a command changes, noted for `muster history`.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use serde_json::Value;
use shared::{
    models::ids::{GameId, LobbyId},
    store::actions::OperatorAction,
};

use crate::{
    cdn,
    command::Topic,
    deployment::Deployment,
    error::{CommandError, Status},
    game, lobby,
    lookup::{self, NamespaceName},
    namespace,
    report::{Report, Reported},
    token, version,
};

/// The change that a command makes, as it is noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    verb: &'static str,
    target: String,
    /// What leads to the game that it concerns.
    on: On,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum On {
    /// The game of this name or identifier.
    Game(String),
    /// The game that the command makes, which its report names.
    NewGame,
    /// The game of a lobby.
    Lobby(LobbyId),
    /// The whole deployment.
    Deployment,
}

impl Deed {
    /// The change that a command makes; `None` when it only reads. A new verb does not compile until it is
    /// here.
    pub fn of(topic: &Topic) -> Option<Self> {
        match topic {
            Topic::Game(action) => of_game(action),
            Topic::Region(game::RegionAction::Add { game, region, .. }) => {
                Some(on_game("region add", game, format!("{game} {}", region.region_id())))
            }
            Topic::Region(game::RegionAction::Probe { game, region, .. }) => {
                Some(on_game("region probe", game, format!("{game} {region}")))
            }
            Topic::Region(game::RegionAction::Start(start)) => {
                Some(on_game("region start", &start.game, start.target()))
            }
            Topic::Region(game::RegionAction::Stop { game, region }) => {
                Some(on_game("region stop", game, format!("{game} {region}")))
            }
            Topic::Version(action) => of_version(action),
            Topic::Namespace(namespace::Action::Create { namespace, version, .. }) => {
                Some(on_namespace("namespace create", namespace, format_args!("--version {version}")))
            }
            Topic::MmConfig(config) => Some(on_game("mm-config", &config.namespace.game, config.changes()?)),
            Topic::Token(action) => of_token(action),
            Topic::Cdn(action) => of_cdn(action),
            Topic::Domain(action) => of_domain(action),
            Topic::Lobby(lobby::Action::End { lobby_id, .. }) => {
                let (target, on) = (lobby_id.to_string(), On::Lobby(lobby_id.clone()));
                Some(Self { verb: "lobby end", target, on })
            }
            Topic::Server(lobby::ServerAction::Remove { namespace, server_id, .. }) => {
                Some(on_namespace("server remove", namespace, server_id))
            }
            Topic::Restore(restore) => {
                Some(Self { verb: "restore", target: restore.target(), on: On::Deployment })
            }
            #[cfg(feature = "aws")]
            Topic::Move(what) => Some(Self { verb: "move", target: what.target(), on: On::Deployment }),
            #[cfg(feature = "aws")]
            Topic::Load(options) => {
                Some(on_game("load", &options.namespace.game, options.namespace.to_string()))
            }
            Topic::Region(game::RegionAction::List(_))
            | Topic::Namespace(namespace::Action::List(_) | namespace::Action::Show(_))
            | Topic::Lobby(
                lobby::Action::List { .. } | lobby::Action::Explain { .. } | lobby::Action::Show { .. },
            )
            | Topic::Server(lobby::ServerAction::List(_))
            | Topic::Doctor
            | Topic::History { .. } => None,
            #[cfg(all(feature = "aws", unix))]
            Topic::Agent(_) => None,
            #[cfg(feature = "aws")]
            Topic::Cost(_) | Topic::Console(_) | Topic::Tail(_) | Topic::Completions { .. } => None,
        }
    }

    async fn game(&self, report: &Report, deployment: &Deployment) -> Result<Option<GameId>, CommandError> {
        let store = &deployment.store;
        Ok(match &self.on {
            On::Game(name) => Some(lookup::game(store, name).await?.game_id),
            On::NewGame => report.json.get("game_id").and_then(Value::as_str).and_then(|id| id.parse().ok()),
            On::Lobby(lobby_id) => match store.lobby(lobby_id).await? {
                Some(lobby) => {
                    let owner = lookup::owner(store, &lobby.pool.namespace_id).await?;
                    owner.map(|(game, _)| game.game_id)
                }
                None => None,
            },
            On::Deployment => None,
        })
    }
}

fn on_game(verb: &'static str, game: &str, target: String) -> Deed {
    Deed { verb, target, on: On::Game(game.to_owned()) }
}

/// A change of a namespace; its target goes on with `rest`.
fn on_namespace(verb: &'static str, namespace: &NamespaceName, rest: impl Display) -> Deed {
    on_game(verb, &namespace.game, format!("{namespace} {rest}"))
}

fn of_game(action: &game::Action) -> Option<Deed> {
    match action {
        game::Action::Create(new) => {
            Some(Deed { verb: "game create", target: new.name().to_owned(), on: On::NewGame })
        }
        game::Action::Import { file, name } => {
            let of_file = || file.file_name().map(|name| name.to_string_lossy().into_owned());
            let target = name.clone().or_else(of_file).unwrap_or_default();
            Some(Deed { verb: "game import", target, on: On::NewGame })
        }
        game::Action::List | game::Action::Show(_) | game::Action::Export(_) => None,
    }
}

fn of_version(action: &version::Action) -> Option<Deed> {
    match action {
        version::Action::Create { game, name, set, .. } => {
            let name = name.iter().map(|name| format!(" --name {name}"));
            let set = set.iter().map(|namespace| format!(" --set {namespace}"));
            let target = std::iter::once(game.clone()).chain(name).chain(set).collect();
            Some(on_game("version create", game, target))
        }
        version::Action::Set { namespace, version } => Some(on_namespace("version set", namespace, version)),
        version::Action::Delete { game, version, cancel, .. } => {
            let cancel = if *cancel { " --cancel" } else { "" };
            Some(on_game("version delete", game, format!("{game} {version}{cancel}")))
        }
        version::Action::List(_)
        | version::Action::Show { .. }
        | version::Action::History { .. }
        | version::Action::Validate { .. }
        | version::Action::Schema => None,
    }
}

fn of_token(action: &token::Action) -> Option<Deed> {
    Some(match action {
        token::Action::Create(token::Kind::Cloud(of)) => {
            on_game("token create cloud", &of.game, of.game.clone())
        }
        token::Action::Create(token::Kind::Public(of)) => {
            on_game("token create public", &of.namespace.game, of.namespace.to_string())
        }
        token::Action::Create(token::Kind::Server(of)) => {
            on_game("token create server", &of.namespace.game, of.namespace.to_string())
        }
        token::Action::Create(token::Kind::Development { namespace, .. }) => {
            on_game("token create development", &namespace.game, namespace.to_string())
        }
        token::Action::Revoke { game, token_id, .. } => {
            on_game("token revoke", game, format!("{game} {token_id}"))
        }
        token::Action::RevokeAll { namespace, kind, .. } => {
            on_namespace("token revoke-all", namespace, kind.token_kind().name())
        }
        token::Action::List(_) => return None,
    })
}

fn of_cdn(action: &cdn::Action) -> Option<Deed> {
    Some(match action {
        cdn::Action::Auth { namespace, auth_type } => on_namespace("cdn auth", namespace, auth_type),
        cdn::Action::User(cdn::UserAction::Set { namespace, user }) => {
            on_namespace("cdn user set", namespace, user.as_str())
        }
        cdn::Action::User(cdn::UserAction::Remove { namespace, user, .. }) => {
            on_namespace("cdn user remove", namespace, user.as_str())
        }
        cdn::Action::User(cdn::UserAction::List(_)) => return None,
    })
}

fn of_domain(action: &cdn::DomainAction) -> Option<Deed> {
    Some(match action {
        cdn::DomainAction::Add { namespace, domain } => on_namespace("domain add", namespace, domain),
        cdn::DomainAction::Remove { namespace, domain, .. } => {
            on_namespace("domain remove", namespace, domain)
        }
        cdn::DomainAction::PublicAuth { namespace, switch, .. } => {
            on_namespace("domain public-auth", namespace, switch)
        }
        cdn::DomainAction::List(_) => return None,
    })
}

/// Does `work` and records it. A refusal is not recorded; after any other failure, a part may have been done.
pub(crate) async fn noted(
    deed: Option<Deed>,
    deployment: &Deployment,
    work: impl Future<Output = Reported>,
) -> Reported {
    let done = work.await;
    let Some(deed) = deed else { return done };
    let none = Report::done();
    let (report, has_failed) = match &done {
        Ok(report) => (report, false),
        Err(error) if matches!(error.status_and_code().0, Status::Failed | Status::Unreachable) => {
            (&none, true)
        }
        Err(_) => return done,
    };
    if let Err(error) = note(deed, report, has_failed, deployment).await
        && !has_failed
    {
        // The change stands, and its result may be a token that is shown only now.
        let _no_reader = writeln!(io::stderr(), "muster: it is done, but not in the history: {error}");
    }
    done
}

async fn note(
    deed: Deed,
    report: &Report,
    has_failed: bool,
    deployment: &Deployment,
) -> Result<(), CommandError> {
    let game_id = deed.game(report, deployment).await?;
    let Deployment { store, ambient, operator, .. } = deployment;
    let (verb, who) = (deed.verb.to_owned(), operator.name.clone());
    let action = OperatorAction { game_id, at: ambient.now(), who, verb, target: deed.target, has_failed };
    Ok(store.note_action(&action, ambient.uuid()).await?)
}

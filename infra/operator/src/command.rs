//! The command line: the tree of topics and verbs, and what runs each topic.

use clap::Subcommand;
#[cfg(feature = "aws")]
use clap::{CommandFactory as _, Parser};

#[cfg(all(feature = "aws", unix))]
use crate::agent;
use crate::{
    cdn, deployment::Deployment, doctor, game, history, lobby, namespace, report::Reported, restore, token,
    version,
};
#[cfg(feature = "aws")]
use crate::{cost, load, lookup::OfNamespace, moving, report::Report, serving, target::Target};

/// Operates a Muster deployment.
///
/// Games are named by their name or identifier, namespaces as GAME/NAMESPACE.
#[cfg(feature = "aws")]
#[derive(Debug, Parser)]
#[command(name = "muster", version, about)]
pub struct Command {
    #[command(subcommand)]
    pub(crate) topic: Topic,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The topic of a command, with its verb.
#[derive(Debug, Subcommand)]
pub(crate) enum Topic {
    /// Games of the deployment.
    #[command(subcommand)]
    Game(game::Action),
    /// Regions of a game.
    #[command(subcommand)]
    Region(game::RegionAction),
    /// Versions of a game: its game modes, regions and rules.
    #[command(subcommand)]
    Version(version::Action),
    /// Namespaces of a game, such as `prod` and `staging`.
    #[command(subcommand)]
    Namespace(namespace::Action),
    /// The limits of a namespace: its lobbies, and the seats per IP address.
    MmConfig(namespace::MatchmakerConfig),
    /// Tokens of players, game servers, developers and studios.
    #[command(subcommand)]
    Token(token::Action),
    /// Access to a namespace's pages.
    #[command(subcommand)]
    Cdn(cdn::Action),
    /// Domains whose pages need no token.
    #[command(subcommand)]
    Domain(cdn::DomainAction),
    /// Lobbies of a namespace.
    #[command(subcommand)]
    Lobby(lobby::Action),
    /// Game servers of a namespace.
    #[command(subcommand)]
    Server(lobby::ServerAction),
    /// Copies tables that were restored from a backup into the deployment's own, over items of the same key.
    Restore(restore::Restore),
    /// Moves all games of a served folder into the deployment, with every seat and the key that its tokens
    /// are signed with, and has the folder's machine answer nobody from then on.
    #[cfg(feature = "aws")]
    Move(moving::Move),
    /// Lists what operators did in the last 90 days, newest first, at most 100.
    History {
        /// The game. Without one, what concerned the whole deployment.
        game: Option<String>,
    },
    /// Checks the deployment, and reports problems.
    Doctor,
    /// Prints what a month costs in AWS, by visits and game servers; with --stack, what the deployment has
    /// cost in this month so far.
    #[cfg(feature = "aws")]
    Cost(cost::command::Options),
    /// Plays sessions of players at a rate, and reports responses, times and cost.
    #[cfg(feature = "aws")]
    Load(load::Options),
    /// Shows the deployment as a page in the browser, until Ctrl-C.
    #[cfg(feature = "aws")]
    Console(serving::Options),
    /// Prints what becomes of a namespace's lobbies and game servers, a line for each change, until Ctrl-C.
    #[cfg(feature = "aws")]
    Tail(OfNamespace),
    /// Runs a game server in any language: registers it, and starts and ends its processes.
    #[cfg(all(feature = "aws", unix))]
    #[command(subcommand)]
    Agent(agent::Action),
    /// Prints a completion script for a shell.
    #[cfg(feature = "aws")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[cfg(feature = "aws")]
impl Command {
    /// Whether it prints JSON.
    #[must_use]
    pub const fn prints_json(&self) -> bool {
        self.json
    }

    /// The completion script for `shell`.
    pub(crate) fn completions(shell: clap_complete::Shell) -> String {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Self::command(), "muster", &mut script);
        String::from_utf8_lossy(&script).trim_end().to_owned()
    }
}

impl Topic {
    /// Runs the command in the deployment, if it needs nothing else.
    pub(crate) async fn run(self, deployment: &Deployment) -> Reported {
        match self {
            Self::Game(action) => game::run(action, deployment).await,
            Self::Region(action) => game::run_on_regions(action, deployment).await,
            Self::Version(action) => version::run(action, deployment).await,
            Self::Namespace(action) => namespace::run(action, deployment).await,
            Self::MmConfig(config) => namespace::configure(config, deployment).await,
            Self::Token(action) => token::run(action, deployment).await,
            Self::Cdn(action) => cdn::run(action, deployment).await,
            Self::Domain(action) => cdn::run_on_domains(action, deployment).await,
            Self::Lobby(action) => lobby::run(action, deployment).await,
            Self::Server(action) => lobby::run_on_servers(action, deployment).await,
            Self::Restore(tables) => restore::run(tables, deployment).await,
            Self::History { game } => history::list(game, deployment).await,
            Self::Doctor => doctor::run(deployment, None).await,
            #[cfg(feature = "aws")]
            Self::Completions { .. }
            | Self::Console(_)
            | Self::Cost(_)
            | Self::Load(_)
            | Self::Move(_)
            | Self::Tail(_) => Ok(Report::done()),
            #[cfg(all(feature = "aws", unix))]
            Self::Agent(_) => Ok(Report::done()),
        }
    }
}

#[cfg(all(test, feature = "aws"))]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn the_local_stack_is_meant_with_and_without_an_address() {
        for option in ["--local", "--local=http://127.0.0.1:3001"] {
            let create = ["game", "create", "x", "--region", "fra=F@1,2", "--config", "x.json"];
            let before = [&["muster", option], &create[..]].concat();
            let after = [&["muster"], &create[..], &[option]].concat();
            assert!(Command::try_parse_from(before).is_ok() && Command::try_parse_from(after).is_ok());
        }
    }
}

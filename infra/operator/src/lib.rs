//! The operator's command: games, versions, namespaces, tokens, lobbies and game servers, in the local stack
//! or in AWS.
//!
//! It reads and writes the tables with the operator's own credentials, by the same store, rules and
//! conditions as the operations. Each topic is a module. Output is for people, or JSON.

use clap::Subcommand;
#[cfg(feature = "aws")]
use clap::{CommandFactory as _, Parser};

#[cfg(feature = "aws")]
mod api;
mod cdn;
mod config_file;
mod consent;
mod console;
pub mod cost;
mod deployment;
mod doctor;
mod error;
mod exchange;
mod game;
mod history;
#[cfg(feature = "aws")]
mod load;
mod lobby;
mod lookup;
mod namespace;
mod operator;
mod own_game;
mod reach;
#[cfg(feature = "aws")]
mod refusals;
mod report;
mod restore;
#[cfg(feature = "aws")]
mod serving;
#[cfg(feature = "aws")]
mod target;
mod token;
mod version;
#[cfg(feature = "aws")]
mod watching;

pub use console::commands;
pub use error::{CommandError, Problem, Status};
pub use own_game::{Applied, OwnGame};
pub use reach::TargetError;
#[cfg(feature = "aws")]
pub use target::Target;

use deployment::Deployment;
#[cfg(feature = "aws")]
use history::{Deed, noted};
use report::Report;

/// Operates a Muster deployment.
///
/// Games are named by their name or identifier, namespaces as GAME/NAMESPACE.
#[cfg(feature = "aws")]
#[derive(Debug, Parser)]
#[command(name = "muster", version, about)]
pub struct Command {
    #[command(subcommand)]
    topic: Topic,
    #[command(flatten)]
    target: Target,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Topic {
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
    /// Plays sessions of players at a rate, and says what they were answered and what it cost.
    #[cfg(feature = "aws")]
    Load(load::Options),
    /// Shows the deployment as a page in the browser, until Ctrl-C.
    #[cfg(feature = "aws")]
    Console(serving::Options),
    /// Prints what becomes of a namespace's lobbies and game servers, a line for each change, until Ctrl-C.
    #[cfg(feature = "aws")]
    Tail {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: lookup::NamespaceName,
    },
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
}

/// Runs the command, and returns the text to print.
///
/// # Errors
/// [`CommandError`].
#[cfg(feature = "aws")]
pub async fn run(command: Command) -> Result<String, CommandError> {
    let Command { topic, target, json } = command;
    let deed = Deed::of(&topic);
    let report = match topic {
        Topic::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Command::command(), "muster", &mut script);
            return Ok(String::from_utf8_lossy(&script).trim_end().to_owned());
        }
        // Without a game, these need no deployment.
        Topic::Version(version::Action::Schema) => version::schema(),
        Topic::Version(version::Action::Validate { file, game: None }) => version::validate(&file)?,
        Topic::Cost(options) => cost::command::run(options, &target).await?,
        Topic::Console(options) => {
            let counts = if target.is_local() { None } else { Some(cost::counts::of(&target).await?) };
            serving::serve(options, target.open().await?, counts).await?
        }
        Topic::Lobby(lobby::Action::List { namespace, watch: true }) => {
            watching::list(&namespace, &target.open().await?, json).await?
        }
        Topic::Tail { namespace } => watching::tail(&namespace, &target.open().await?, json).await?,
        Topic::Load(options) => {
            let (is_local, deployment) = (target.is_local(), target.open().await?);
            noted(deed, &deployment, load::run(options, &deployment, is_local)).await?
        }
        Topic::Doctor => {
            doctor::run(&target.open().await?, Some(refusals::by_address(&target).await)).await?
        }
        topic => {
            let deployment = target.open().await?;
            noted(deed, &deployment, in_deployment(topic, &deployment)).await?
        }
    };
    Ok(report.show(json))
}

async fn in_deployment(topic: Topic, deployment: &Deployment) -> Result<Report, CommandError> {
    match topic {
        Topic::Game(action) => game::run(action, deployment).await,
        Topic::Region(action) => game::run_on_regions(action, deployment).await,
        Topic::Version(action) => version::run(action, deployment).await,
        Topic::Namespace(action) => namespace::run(action, deployment).await,
        Topic::MmConfig(config) => namespace::configure(config, deployment).await,
        Topic::Token(action) => token::run(action, deployment).await,
        Topic::Cdn(action) => cdn::run(action, deployment).await,
        Topic::Domain(action) => cdn::run_on_domains(action, deployment).await,
        Topic::Lobby(action) => lobby::run(action, deployment).await,
        Topic::Server(action) => lobby::run_on_servers(action, deployment).await,
        Topic::Restore(tables) => restore::run(tables, deployment).await,
        Topic::History { game } => history::list(game, deployment).await,
        Topic::Doctor => doctor::run(deployment, None).await,
        #[cfg(feature = "aws")]
        Topic::Completions { .. }
        | Topic::Console(_)
        | Topic::Cost(_)
        | Topic::Load(_)
        | Topic::Tail { .. } => Ok(Report::done()),
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

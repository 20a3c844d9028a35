//! The operator's command: games, versions, namespaces, tokens, lobbies and game servers, in the local stack
//! or in AWS.
//!
//! It reads and writes the tables with the operator's own credentials, by the same store, rules and
//! conditions as the operations. Each topic is a module. Output is for people, or JSON.

#[cfg(all(feature = "aws", unix))]
mod agent;
#[cfg(feature = "aws")]
mod api;
mod cdn;
mod command;
mod config_file;
mod consent;
mod console;
pub mod cost;
mod deed;
mod deployment;
mod doctor;
mod error;
mod exchange;
mod game;
mod history;
#[cfg(feature = "aws")]
mod interruption;
#[cfg(feature = "aws")]
mod load;
mod lobby;
mod lookup;
mod mistakes;
#[cfg(feature = "aws")]
mod moving;
mod namespace;
mod operator;
mod own_game;
#[cfg(unix)]
pub mod process_group;
mod reach;
#[cfg(feature = "aws")]
mod refusals;
mod report;
mod restore;
#[cfg(feature = "aws")]
mod serving;
mod starter;
#[cfg(feature = "aws")]
mod target;
#[cfg(feature = "aws")]
mod tasks;
mod token;
mod version;
#[cfg(feature = "aws")]
mod watching;

#[cfg(feature = "aws")]
pub use command::Command;
pub use console::commands;
pub use error::{CommandError, Problem, Status};
pub use own_game::{Applied, OwnGame};
pub use reach::TargetError;
#[cfg(feature = "aws")]
pub use target::Target;

#[cfg(feature = "aws")]
use command::Topic;
#[cfg(feature = "aws")]
use deed::{Deed, noted};

/// Runs the command, and returns the text to print.
///
/// # Errors
/// [`CommandError`].
#[cfg(feature = "aws")]
pub async fn run(command: Command) -> Result<String, CommandError> {
    let Command { topic, target, json } = command;
    let deed = Deed::of(&topic);
    let report = match topic {
        Topic::Completions { shell } => return Ok(Command::completions(shell)),
        #[cfg(unix)]
        Topic::Agent(action) => agent::run(action).await?,
        // Without a game, these need no deployment.
        Topic::Version(version::Action::Schema) => version::schema(),
        Topic::Version(version::Action::Validate { file, game: None }) => version::validate(&file)?,
        Topic::Cost(options) => cost::command::run(options, &target).await?,
        Topic::Console(options) => {
            let counts = if target.is_here() { None } else { Some(cost::counts::of(&target).await?) };
            let deployment = target.open().await?;
            let commands = console::commands_on(deployment.clone(), options.may_change());
            serving::serve(options, deployment, counts, commands).await?
        }
        Topic::Lobby(lobby::Action::List { namespace, watch: true }) => {
            watching::list(&namespace, &target.open().await?, json).await?
        }
        Topic::Tail(of) => watching::tail(&of.namespace, &target.open().await?, json).await?,
        Topic::Load(options) => {
            options.share.check_target(target.is_local())?;
            let (is_local, deployment) = (target.is_here(), target.open().await?);
            noted(deed, &deployment, load::run(options, &deployment, is_local)).await?
        }
        Topic::Doctor => {
            let refusals = refusals::by_address(&target).await;
            let outside = doctor::Outside { refusals, tasks: tasks::running(&target).await };
            doctor::run(&target.open().await?, Some(outside)).await?
        }
        Topic::Move(what) => {
            let deployment = target.open().await?;
            noted(deed, &deployment, moving::run(what, &deployment)).await?
        }
        topic => {
            let deployment = target.open().await?;
            noted(deed, &deployment, topic.run(&deployment)).await?
        }
    };
    Ok(report.show(json))
}

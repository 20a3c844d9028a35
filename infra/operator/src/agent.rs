//! `muster agent run`: Muster's half of a game server, for a server in any language.
//!
//! It registers, sends heartbeats, starts the server's processes and ends them, and offers them an HTTP
//! interface on loopback. With a process for each lobby, each number of a port's range is a game server of
//! its own in Muster, because players learn where to connect from the game server of their lobby.

use std::{ffi::OsString, sync::Arc};

use clap::Subcommand;
use serde_json::json;
use shared::base::ambient::Ambient;
use tokio::{
    net::TcpListener,
    task::{JoinSet, LocalSet},
};

use crate::{
    error::CommandError,
    report::{Report, Reported},
};

mod child;
mod door;
mod options;
mod output;
mod ports;
mod registration;
mod stage;

use child::{Child, Launcher};
use door::{Door, Scope};
use options::{Options, Settings};
use registration::{Registration, Runs};
use stage::{Stage, Stages};

/// What the agent does.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Runs game server processes that Muster places lobbies on, until SIGTERM or Ctrl-C.
    ///
    /// Starts `./server` for each lobby, or once with --shared, with what it needs in its environment. The
    /// server token comes from the environment variable MUSTER_SERVER_TOKEN, and no process gets it.
    #[command(after_help = SIGNALS)]
    Run(Box<Options>),
    /// Becomes the command, and ends with the agent that started it.
    #[command(hide = true)]
    Child {
        /// The agent's process.
        agent: i32,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

const SIGNALS: &str = "\
Signals:
  SIGTERM, SIGINT  deregister, wait for the lobbies to end, at most --drain-seconds, and end
  a second one     end at once, with all processes

Exit status:
  0  ended by a signal, or deregistered by an operator
  1  the process of --shared ended
  2  the command line is wrong, or there is no server token
  4  Muster refuses the registration, or a later start replaced this one
  5  no heartbeat was accepted for three leases
  6  the server token may not register";

/// Runs the agent, or becomes one of its processes.
pub(crate) async fn run(action: Action) -> Reported {
    match action {
        Action::Run(options) => {
            let settings = Settings::of(*options)?;
            // Linux ends a process with the thread that started it, so one thread starts all of them.
            LocalSet::new().run_until(serve(Arc::new(settings))).await
        }
        Action::Child { agent, command } => child::become_command(agent, &command),
    }
}

async fn serve(settings: Arc<Settings>) -> Reported {
    let cannot = |error: std::io::Error| CommandError::Refused(format!("cannot listen on loopback: {error}"));
    let stages = Stages::listen(settings.drain).map_err(cannot)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let door = Arc::new(Door::new(Ambient::system()));
    let _serving = tokio::spawn(Arc::clone(&door).serve(listener));
    let launcher = Arc::new(Launcher::new(Arc::clone(&settings), Arc::clone(&door), &address.to_string()));

    let mut works = JoinSet::new();
    let mut registrations = Vec::new();
    for slot in settings.slots() {
        let runs = if settings.is_shared { Runs::Shared } else { Runs::EachLobby(Arc::clone(&launcher)) };
        registrations.push(Registration::new(Arc::clone(&settings), slot, runs));
    }
    if settings.is_shared
        && let Some(registration) = registrations.first()
    {
        let scope = Scope::all_of(Arc::clone(&registration.server));
        let child = launcher.launch(scope, "server", registration.environment())?;
        works.spawn_local(keep_shared(child, stages.clone()));
    }
    let mut left = registrations.len();
    for registration in registrations {
        let stages = stages.clone();
        works.spawn_local(async move {
            registration.keep(stages).await?;
            Ok(Ended::Registration)
        });
    }
    let mut result = Ok(());
    while let Some(ended) = works.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(CommandError::Unhealthy(error.to_string())));
        match ended {
            Ok(Ended::Registration) => {
                left -= 1;
                if left == 0 {
                    stages.raise(Stage::Ending);
                }
            }
            Ok(Ended::Process) => stages.raise(Stage::Ending),
            Err(error) => {
                stages.raise(Stage::Ending);
                result = result.and(Err(error));
            }
        }
    }
    result?;
    Ok(Report { text: "ended".to_owned(), json: json!({}) })
}

/// What of an agent has ended as it should.
enum Ended {
    Registration,
    Process,
}

/// Waits for the process of all lobbies, which ends after them.
async fn keep_shared(mut child: Child, stages: Stages) -> Result<Ended, CommandError> {
    let status = tokio::select! {
        status = child.wait() => status,
        () = stages.reached(Stage::Ending) => {
            child.stop(&stages).await;
            return Ok(Ended::Process);
        }
    };
    child.stop(&stages).await;
    if stages.now() >= Stage::Draining {
        return Ok(Ended::Process);
    }
    Err(CommandError::ServerEnded(status))
}

//! Processes of the game server: each in a process group of its own, none outlives the agent.

use std::{collections::BTreeMap, ffi::OsString, io, sync::Arc};

use tokio::time::{Duration, sleep};

use crate::{
    agent::{
        door::{Door, Pass, Scope},
        options::{SERVER_TOKEN, Settings},
        output::{to_stderr, to_stdout},
        stage::{Stage, Stages},
    },
    error::CommandError,
    process_group::{self, ProcessGroup, mortal},
    report::{Report, Reported},
};

/// Environment variables.
pub(super) type Environment = BTreeMap<String, String>;

/// Starts processes of the command.
pub(super) struct Launcher {
    settings: Arc<Settings>,
    door: Arc<Door>,
    door_url: String,
}

/// A process, ended when it is dropped.
pub(super) struct Child {
    process: ProcessGroup,
    /// How long it may take to end.
    stop: Duration,
    /// Its right at the door ends with it.
    _pass: Pass,
}

impl Launcher {
    pub fn new(settings: Arc<Settings>, door: Arc<Door>, address: &str) -> Self {
        Self { settings, door, door_url: format!("http://{address}") }
    }

    /// Starts a process that may act within `scope`. `name` begins each line that it prints.
    ///
    /// # Errors
    /// [`CommandError::Refused`] when there can be no more processes.
    pub fn launch(&self, scope: Scope, name: &str, environment: Environment) -> Result<Child, CommandError> {
        let cannot = |error: io::Error| CommandError::Refused(format!("cannot start a process: {error}"));
        let pass = self.door.open(scope);
        let mut command = mortal(&["agent", "child"], &self.settings.command);
        command
            .env_remove(SERVER_TOKEN)
            .envs(environment)
            .env("MUSTER_API_URL", &self.settings.server.url)
            .env("MUSTER_AGENT_URL", &self.door_url)
            .env("MUSTER_AGENT_SECRET", pass.secret());
        let process = ProcessGroup::start(&mut command, name, [to_stdout, to_stderr]).map_err(cannot)?;
        Ok(Child { process, stop: self.settings.stop, _pass: pass })
    }
}

impl Child {
    /// Resolves with its exit status in words, once it has ended.
    pub async fn wait(&mut self) -> String {
        match self.process.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Ends it with all that it started: asks, and kills what is left after a while.
    pub async fn stop(self, stages: &Stages) {
        let limit = async {
            tokio::select! {
                () = sleep(self.stop) => {}
                () = stages.reached(Stage::Killing) => {}
            }
        };
        self.process.stop(limit).await;
    }
}

/// Becomes the command, and is killed when `agent` ends.
///
/// # Errors
/// [`CommandError::Refused`] when it cannot be started.
pub(super) fn become_command(agent: i32, command: &[OsString]) -> Reported {
    match process_group::become_command(agent, command) {
        Err(None) => Ok(Report::done()),
        Err(Some(problem)) => Err(CommandError::Refused(problem)),
        Ok(never) => match never {},
    }
}

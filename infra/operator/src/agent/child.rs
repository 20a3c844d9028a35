//! Processes of the game server: each in a process group of its own, none outlives the agent.

use std::{
    collections::BTreeMap, ffi::OsString, io, os::unix::process::CommandExt as _, process::Stdio, sync::Arc,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    process,
    task::JoinSet,
    time::{Duration, sleep, timeout},
};

use crate::{
    agent::{
        door::{Door, Pass, Scope},
        options::{SERVER_TOKEN, Settings},
        output::{copy_lines, to_stderr, to_stdout},
        stage::{Stage, Stages},
    },
    error::CommandError,
    report::{Report, Reported},
};

/// How long the last lines of a process may take, where one that it started holds its output open.
const LAST_LINES: Duration = Duration::from_secs(1);

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
    process: process::Child,
    group: Option<Pid>,
    output: JoinSet<()>,
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
        let mut command = mortal(&self.settings.command);
        let mut process = command
            .env_remove(SERVER_TOKEN)
            .envs(environment)
            .env("MUSTER_API_URL", &self.settings.api_url)
            .env("MUSTER_AGENT_URL", &self.door_url)
            .env("MUSTER_AGENT_SECRET", pass.secret())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let group = process.id().and_then(|id| id.try_into().ok()).map(Pid::from_raw);
        let mut output = JoinSet::new();
        let prefix = format!("[{name}] ");
        if let Some(pipe) = process.stdout.take() {
            output.spawn(copy_lines(pipe, prefix.clone(), to_stdout));
        }
        if let Some(pipe) = process.stderr.take() {
            output.spawn(copy_lines(pipe, prefix, to_stderr));
        }
        Ok(Child { process, group, output, stop: self.settings.stop, _pass: pass })
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
    pub async fn stop(mut self, stages: &Stages) {
        self.signal(Signal::SIGTERM);
        tokio::select! {
            _ended = self.process.wait() => {}
            () = sleep(self.stop) => {}
            () = stages.reached(Stage::Killing) => {}
        }
        self.signal(Signal::SIGKILL);
        let _ended = self.process.wait().await;
        self.group = None;
        let _printed = timeout(LAST_LINES, async { while self.output.join_next().await.is_some() {} }).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _nobody_left = killpg(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The command as a process that ends with the agent, also when that is killed.
#[cfg(target_os = "linux")]
fn mortal(command: &[OsString]) -> process::Command {
    // The program of this very process, also after an update has replaced its file.
    let mut mortal = process::Command::new("/proc/self/exe");
    mortal.args(["agent", "child", &std::process::id().to_string(), "--"]).args(command);
    mortal
}

/// The command as a process. Only Linux ends it with an agent that is killed.
#[cfg(not(target_os = "linux"))]
fn mortal(command: &[OsString]) -> process::Command {
    let mut words = command.iter();
    let mut command = process::Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
    command.args(words);
    command
}

/// Becomes the command, and is killed when `agent` ends.
///
/// # Errors
/// [`CommandError::Refused`] when it cannot be started.
pub(super) fn become_command(agent: i32, command: &[OsString]) -> Reported {
    #[cfg(target_os = "linux")]
    {
        let cannot = |error: nix::Error| CommandError::Refused(format!("cannot end with the agent: {error}"));
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(cannot)?;
    }
    // It may have ended before.
    if nix::unistd::getppid() != Pid::from_raw(agent) {
        return Ok(Report::done());
    }
    let mut words = command.iter();
    let program = words.next().map(OsString::as_os_str).unwrap_or_default();
    let error = std::process::Command::new(program).args(words).exec();
    Err(CommandError::Refused(format!("cannot start {}: {error}", program.display())))
}

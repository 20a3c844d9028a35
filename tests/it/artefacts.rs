//! What is built and deployed: the workspace's binaries as processes, and the functions as the template
//! declares them.

#![expect(clippy::expect_used, clippy::panic, reason = "this is test code: what cannot go on panics")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use harness::binaries::{build, profile_folder};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

pub use harness::{binaries::workspace, declared::functions};

/// Far longer than any process here needs, so that only a process that hangs reaches it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The workspace's binary `name`, built by now.
pub fn binary(name: &str) -> &'static Path {
    let binaries = build_binaries();
    binaries
        .get(name)
        .unwrap_or_else(|| panic!("the workspace has no binary `{name}`: {:?}", binaries.keys()))
}

/// The workspace's binaries, by name.
///
/// The first call has cargo build all of them, into the folder and with the profile of this very test.
pub fn build_binaries() -> &'static BTreeMap<String, PathBuf> {
    static BINARIES: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    BINARIES.get_or_init(|| {
        let folder = profile_folder();
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        build(&["--workspace", "--bins"], profile)
    })
}

/// A process of one test, killed with it.
pub struct Program {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// How a process ended, and all that it printed.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// Starts a binary of the workspace with `environment` and nothing of this process's own.
    pub fn start(name: &str, arguments: &[&str], environment: &BTreeMap<String, String>) -> Self {
        Self::start_at(binary(name), arguments, environment)
    }

    /// Starts any program likewise.
    pub fn start_at(path: &Path, arguments: &[&str], environment: &BTreeMap<String, String>) -> Self {
        Self::start_reading(path, arguments, environment, Stdio::null())
    }

    fn start_reading(
        path: &Path,
        arguments: &[&str],
        environment: &BTreeMap<String, String>,
        input: Stdio,
    ) -> Self {
        let mut child = Command::new(path)
            .args(arguments)
            .env_clear()
            .envs(environment)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", path.display()));
        let stdout = Lines::of(child.stdout.take().expect("a pipe"));
        let stderr = Lines::of(child.stderr.take().expect("a pipe"));
        Self { child, stdout, stderr }
    }

    /// Runs a binary of the workspace until it ends.
    pub async fn run(name: &str, arguments: &[&str], environment: &BTreeMap<String, String>) -> Ended {
        Self::start(name, arguments, environment).end().await
    }

    /// Runs a binary of the workspace with `input` piped in until it ends.
    pub async fn run_with(name: &str, arguments: &[&str], input: &str) -> Ended {
        let mut program = Self::start_reading(binary(name), arguments, &BTreeMap::new(), Stdio::piped());
        let mut pipe = program.child.stdin.take().expect("a pipe");
        // What it does not read it need not get.
        let _read = pipe.write_all(input.as_bytes()).await;
        drop(pipe);
        program.end().await
    }

    /// The first line on standard output that contains `part`, once it is there; nothing when the process
    /// ends without.
    pub async fn line_with(&mut self, part: &str) -> Option<String> {
        self.stdout.line_with(part).await
    }

    /// The same on standard error.
    pub async fn logged(&mut self, part: &str) -> Option<String> {
        self.stderr.line_with(part).await
    }

    /// How many lines on standard error contain `part` so far.
    pub fn logged_lines(&self, part: &str) -> usize {
        self.log().lines().filter(|line| line.contains(part)).count()
    }

    /// Everything on standard error so far.
    pub fn log(&self) -> String {
        self.stderr.text.lock().expect("no reader panics").clone()
    }

    /// Everything on standard output so far.
    pub fn printed(&self) -> String {
        self.stdout.text.lock().expect("no reader panics").clone()
    }

    /// Sends a signal, by its name without `SIG`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let id = self.child.id().expect("it still runs").to_string();
        let status = std::process::Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the process to end by itself, as long as it takes.
    pub async fn wait(&mut self) -> ExitStatus {
        self.child.wait().await.expect("it can be waited for")
    }

    /// Waits for the process to end by itself, soon.
    pub async fn end(&mut self) -> Ended {
        if timeout(PATIENCE, self.wait()).await.is_err() {
            panic!("it goes on: {:?}", self.kill().await);
        }
        self.all().await
    }

    /// Ends the process, unless it has ended.
    pub async fn kill(&mut self) -> Ended {
        self.child.kill().await.expect("it can be killed");
        self.all().await
    }

    async fn all(&mut self) -> Ended {
        Ended { status: self.wait().await, stdout: self.stdout.all().await, stderr: self.stderr.all().await }
    }
}

/// What a process prints, read as it comes so that no pipe ever fills.
struct Lines {
    text: Arc<Mutex<String>>,
    grown: watch::Receiver<()>,
    reader: JoinHandle<()>,
}

impl Lines {
    fn of(pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (grows, grown) = watch::channel(());
        let kept = Arc::clone(&text);
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Some(line) = lines.next_line().await.expect("a process prints UTF-8") {
                let mut text = kept.lock().expect("no reader panics");
                text.push_str(&line);
                text.push('\n');
                grows.send_replace(());
            }
        });
        Self { text, grown, reader }
    }

    async fn line_with(&mut self, part: &str) -> Option<String> {
        let Self { text, grown, .. } = self;
        let wait = async {
            loop {
                let found = {
                    let text = text.lock().expect("no reader panics");
                    text.lines().find(|line| line.contains(part)).map(str::to_owned)
                };
                if found.is_some() || grown.changed().await.is_err() {
                    return found;
                }
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("no line with `{part}` came"))
    }

    /// Everything, once the process has ended.
    async fn all(&mut self) -> String {
        let reader = &mut self.reader;
        reader.await.expect("the reader ends with the process");
        self.text.lock().expect("no reader panics").clone()
    }
}

/// A folder of one test, removed with its contents at the end.
pub struct TestFolder(PathBuf);

impl TestFolder {
    pub fn new() -> Self {
        let path =
            env::temp_dir().join(format!("muster-{}", shared::base::ambient::Ambient::system().uuid()));
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    /// The path of `name` in the folder.
    pub fn path(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("a UTF-8 path").to_owned()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _still_used = fs::remove_dir_all(&self.0);
    }
}

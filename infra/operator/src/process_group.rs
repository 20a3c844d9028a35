//! Processes in a group of their own, of which none outlives this one.

use std::{
    convert::Infallible,
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    process,
    task::{JoinSet, spawn_blocking},
    time::{Duration, timeout},
};

/// How long the last lines of a process may take, where one that it started holds its output open.
const LAST_LINES: Duration = Duration::from_secs(1);
/// A longer line is printed in parts.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Writes a line, with its end. This process goes on without a reader.
pub type Print = fn(&[u8]);

/// A process with all that it starts, killed when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    process: process::Child,
    group: Option<Pid>,
    output: JoinSet<()>,
}

impl ProcessGroup {
    /// Starts `command`. `name` begins each line of its output.
    ///
    /// # Errors
    /// When there can be no more processes, or there is no such program.
    pub fn start(command: &mut process::Command, name: &str, [out, err]: [Print; 2]) -> io::Result<Self> {
        let mut process = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let group = process.id().and_then(|id| id.try_into().ok()).map(Pid::from_raw);
        let mut output = JoinSet::new();
        let prefix = format!("[{name}] ");
        if let Some(pipe) = process.stdout.take() {
            output.spawn(copy_lines(pipe, prefix.clone(), out));
        }
        if let Some(pipe) = process.stderr.take() {
            output.spawn(copy_lines(pipe, prefix, err));
        }
        Ok(Self { process, group, output })
    }

    /// Its identifier, while the process runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Resolves once the process has ended.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Ends it with all that it started: asks, and kills what is left at `limit`.
    pub async fn stop(mut self, limit: impl Future<Output = ()>) {
        self.signal(Signal::SIGTERM);
        tokio::select! {
            _ended = self.process.wait() => {}
            () = limit => {}
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

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The command as a process that ends with the thread that starts it, also when this program is killed: this
/// program again, with `entry`, its own process identifier and the command as arguments, which has to
/// [`become_command`].
#[cfg(target_os = "linux")]
#[must_use]
pub fn mortal(entry: &[&str], command: &[OsString]) -> process::Command {
    // The program of this very process, also after an update has replaced its file.
    let mut mortal = process::Command::new("/proc/self/exe");
    mortal.args(entry).args([&std::process::id().to_string(), "--"]).args(command);
    mortal
}

/// The command as a process. Only Linux ends it with a program that is killed.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn mortal(_entry: &[&str], command: &[OsString]) -> process::Command {
    let mut words = command.iter();
    let mut command = process::Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
    command.args(words);
    command
}

/// Becomes the command, and is killed when `parent` ends; returns only without it.
///
/// # Errors
/// Why the command cannot be started; `None` when `parent` has ended before.
pub fn become_command(parent: i32, command: &[OsString]) -> Result<Infallible, Option<String>> {
    #[cfg(target_os = "linux")]
    {
        let cannot = |error: nix::Error| format!("cannot end with the program that starts it: {error}");
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(cannot)?;
    }
    if nix::unistd::getppid() != Pid::from_raw(parent) {
        return Err(None);
    }
    let mut words = command.iter();
    let program = words.next().map(OsString::as_os_str).unwrap_or_default();
    let error = std::process::Command::new(program).args(words).exec();
    Err(Some(format!("cannot start {}: {error}", program.display())))
}

/// Whether it is a file, or one of this name is in a folder of `path`, as of the variable `PATH`.
#[must_use]
pub fn is_program(program: &OsStr, path: Option<&OsStr>) -> bool {
    let program = Path::new(program);
    if program.components().count() > 1 || program.is_absolute() {
        return program.is_file();
    }
    path.into_iter().flat_map(env::split_paths).any(|folder| folder.join(program).is_file())
}

/// Copies lines from `source` until it ends. A slow reader delays the process, and nothing else.
async fn copy_lines(source: impl AsyncRead + Unpin, prefix: String, print: Print) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = prefix.clone().into_bytes();
        let read = (&mut source).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let _printed = spawn_blocking(move || print(&line)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn each_line_gets_the_prefix_and_an_end() {
        static PRINTED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        let print: Print = |line| PRINTED.lock().unwrap().extend(line);
        copy_lines(&b"one\n\xfftwo\nthree"[..], "[x] ".to_owned(), print).await;
        assert_eq!(*PRINTED.lock().unwrap(), b"[x] one\n[x] \xfftwo\n[x] three\n");
    }
}

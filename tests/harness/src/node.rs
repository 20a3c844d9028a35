//! Node.js programs of the tests, with their packages as locked.

use std::{fs, io::ErrorKind, path::Path, process::Output, time::Duration};

use tokio::{process::Command, sync::Mutex, time::timeout};

use crate::left_out::needs;

/// Far above what an installation over a slow connection takes.
const PATIENCE: Duration = Duration::from_secs(300);

static INSTALLING: Mutex<()> = Mutex::const_new(());

/// Runs a command in `folder`; nothing when there is no such command.
pub async fn run(folder: &Path, command: &str, arguments: &[&str]) -> Option<Output> {
    let mut process = Command::new(command);
    let output = process.args(arguments).current_dir(folder).kill_on_drop(true).output();
    match timeout(PATIENCE, output).await.unwrap_or_else(|_| panic!("{command} does not end")) {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{command}: {error}"),
    }
}

/// What of Node.js is not installed on this machine, if anything.
pub async fn missing_command() -> Option<&'static str> {
    for command in ["node", "npm"] {
        if run(Path::new("."), command, &["--version"]).await.is_none() {
            return Some(command);
        }
    }
    None
}

/// Whether the test `name` can go on with the packages of `folder`. Without Node.js it is left out.
///
/// # Panics
/// As [`needs`], or when the packages cannot be installed.
pub async fn is_ready(name: &str, folder: &Path) -> bool {
    let is_ready = needs(name, missing_command().await);
    if is_ready {
        install(folder).await;
    }
    is_ready
}

/// Installs the packages of `folder` as locked, unless that has been done.
pub async fn install(folder: &Path) {
    // Two tests may need the same folder at the same time.
    let _one_at_a_time = INSTALLING.lock().await;
    let lock = fs::read_to_string(folder.join("package-lock.json")).expect("a lock file");
    let installed = folder.join("node_modules/installed");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == lock) {
        return;
    }
    let output = run(folder, "npm", &["ci", "--no-audit", "--no-fund"]).await.expect("npm was there");
    assert!(output.status.success(), "npm ci: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(installed, lock).expect("a folder that npm made");
}

//! The operations through the npm client that existing games ship, where Node is installed.

#![expect(clippy::expect_used, clippy::panic, reason = "this is test code: what cannot go on panics")]

use std::{env, fs, path::PathBuf, process::Output, time::Duration};

use muster_tests::TestStack;
use tokio::{process::Command, time::timeout};

use crate::artefacts::workspace;

/// Far above what an installation over a slow connection takes.
const PATIENCE: Duration = Duration::from_secs(300);

fn folder() -> PathBuf {
    workspace().join("tests/contract")
}

/// Runs a command in the contract's folder; nothing when there is no such command.
async fn run(command: &str, arguments: &[&str]) -> Option<Output> {
    let mut process = Command::new(command);
    let output = process.args(arguments).current_dir(folder()).kill_on_drop(true).output();
    match timeout(PATIENCE, output).await.unwrap_or_else(|_| panic!("{command} does not end")) {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command}: {error}"),
    }
}

/// Installs the client as locked, unless that has been done.
async fn install() {
    let lock = fs::read_to_string(folder().join("package-lock.json")).expect("a lock file");
    let installed = folder().join("node_modules/installed");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == lock) {
        return;
    }
    let output = run("npm", &["ci", "--no-audit", "--no-fund"]).await.expect("npm was there");
    assert!(output.status.success(), "npm ci: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(installed, lock).expect("a folder that npm made");
}

#[tokio::test]
async fn the_client_of_existing_games_works_unchanged() {
    for command in ["node", "npm"] {
        if run(command, &["--version"]).await.is_none() {
            assert!(env::var_os("CI").is_none(), "{command} must be installed where CI is set");
            println!("skipped: {command} is not installed");
            return;
        }
    }
    install().await;
    let stack = TestStack::start().await;
    let output = run("node", &["contract.mjs", &stack.demo().base_url]).await.expect("node was there");
    let (printed, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{problems}");
    let closing = printed.lines().last().unwrap_or_default();
    let passed = closing.strip_suffix(" passed, 0 failed").and_then(|count| count.parse::<usize>().ok());
    let listed = printed.lines().filter(|line| line.starts_with("ok    ")).count();
    assert!(listed > 0, "{printed}");
    assert_eq!(passed, Some(listed), "{printed}");
}

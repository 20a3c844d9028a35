//! The repository's own clients on the running stack, where what they are written in is installed.

#![expect(clippy::expect_used, reason = "this is test code: what cannot go on panics")]

use std::{
    env,
    path::{Path, PathBuf},
};

use harness::{
    TestStack,
    left_out::needs,
    node::{is_ready, run},
};
use tokio::sync::OnceCell;

use crate::artefacts::workspace;

/// Runs a command in `folder`, which has to succeed, and returns what it printed.
async fn succeed(folder: &Path, command: &str, arguments: &[&str]) -> String {
    let output = run(folder, command, arguments).await.expect("it is installed");
    let (printed, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command} {arguments:?}: {printed}\n{problems}");
    printed.into_owned()
}

/// The folder of the TypeScript client, built; `None` without Node.js, where its tests are left out.
pub async fn typescript_client() -> Option<PathBuf> {
    // Tests that run at the same time share the folder.
    static IS_BUILT: OnceCell<bool> = OnceCell::const_new();
    let folder = workspace().join("infra/clients/typescript");
    let build = || async {
        let is_ready = is_ready("the TypeScript client", &folder).await;
        if is_ready {
            succeed(&folder, "npm", &["run", "build"]).await;
        }
        is_ready
    };
    IS_BUILT.get_or_init(build).await.then_some(folder)
}

#[tokio::test]
async fn the_types_of_the_typescript_client_are_those_of_the_document() {
    let Some(folder) = typescript_client().await else { return };
    succeed(&folder, "node", &["types.mjs", "--check"]).await;
}

#[tokio::test]
async fn the_typescript_client_keeps_the_rules_of_retries_seats_and_heartbeats() {
    let Some(folder) = typescript_client().await else { return };
    // Its reservations and leases are of the machine's time.
    let stack = TestStack::start_live().await;
    let url = format!("MUSTER_URL={}", stack.demo().base_url);
    let printed = succeed(&folder, "env", &[&url, "npm", "test"]).await;
    // The sums at the end, with the sign of the reporter before them.
    let count = |name: &str| {
        let counts = printed.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(name));
        counts.filter_map(|count| count.trim().parse::<usize>().ok()).next_back()
    };
    assert!(count("pass ") > Some(0), "{printed}");
    assert_eq!(count("pass "), count("tests "), "{printed}");
}

/// The Python of the tests: that of `MUSTER_PYTHON`, or the first of the machine.
pub fn python() -> String {
    env::var("MUSTER_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// The folder of the Python client; `None` without Python or its library, where its tests are left out.
pub async fn python_client() -> Option<PathBuf> {
    let folder = workspace().join("infra/clients/python");
    let program = "import sys, httpx; sys.exit(sys.version_info < (3, 10))";
    let output = run(&folder, &python(), &["-c", program]).await;
    let is_there = output.is_some_and(|output| output.status.success());
    let missing = (!is_there).then_some("Python from 3.10 on with httpx");
    needs("the Python client", missing).then_some(folder)
}

#[tokio::test]
async fn the_types_of_the_python_client_are_those_of_the_document() {
    let Some(folder) = python_client().await else { return };
    succeed(&folder, &python(), &["-B", "write_types.py", "--check"]).await;
}

#[tokio::test]
async fn the_python_client_keeps_the_rules_of_retries_seats_and_heartbeats() {
    let Some(folder) = python_client().await else { return };
    let stack = TestStack::start_live().await;
    let url = format!("MUSTER_URL={}", stack.demo().base_url);
    let program = python();
    let arguments = [&url, "PYTHONPATH=src", &program, "-B", "-m", "unittest", "discover", "tests"];
    let output = run(&folder, "env", &arguments).await.expect("it was there");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let count = printed.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse().ok());
    assert!(count > Some(30), "{printed}");
}

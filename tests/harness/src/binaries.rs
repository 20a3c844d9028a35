//! The workspace's binaries, built by whoever runs them: cargo builds no binaries of other packages for a
//! test or benchmark.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// The workspace's folder.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder into which cargo put this test or benchmark, named after its profile.
#[must_use]
pub fn profile_folder() -> PathBuf {
    let this = env::current_exe().expect("a running program is a file");
    // <target>/<profile>/deps/<this>
    this.ancestors().nth(2).expect("a profile's folder").to_owned()
}

/// Lets cargo build the binaries of `selection` with `profile` into the target folder of this test or
/// benchmark.
#[must_use]
pub fn build(selection: &[&str], profile: &str) -> BTreeMap<String, PathBuf> {
    let folder = profile_folder();
    build_into(folder.parent().expect("a target folder"), selection, profile, &[])
}

/// Environment variables to hide from a cargo that a test starts, because they make it rebuild crates: those
/// that describe the test's own package, and `RUSTC_BOOTSTRAP`, which makes the test harness print times.
fn variables_that_rebuild() -> impl Iterator<Item = String> {
    let rebuilds = |name: &String| {
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "RUSTC_BOOTSTRAP"
    };
    env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(rebuilds)
}

/// Lets cargo build the binaries of `selection` with `profile` into the folder `target`, with cargo's
/// variables set to `settings`.
#[must_use]
pub fn build_into(
    target: &Path,
    selection: &[&str],
    profile: &str,
    settings: &[(&str, &str)],
) -> BTreeMap<String, PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    for name in variables_that_rebuild() {
        cargo.env_remove(name);
    }
    let built = cargo
        .arg("build")
        .args(selection)
        .args(["--locked", "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .arg("--target-dir")
        .arg(target)
        .envs(settings.iter().copied())
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .expect("cargo runs");
    let problems = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the binaries do not build:\n{problems}");
    let messages = String::from_utf8(built.stdout).expect("cargo writes UTF-8");
    messages
        .lines()
        .filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let executable = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), executable.into()))
        })
        .collect()
}

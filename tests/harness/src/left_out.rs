//! Tests that need a program which this machine lacks: `cargo test` names them at its end.
//!
//! Such a test leaves a file with the reason in a folder beside the test's own binary; the package
//! `workspace-summary`, whose only test runs after all others, prints what is there.

use std::{env, fs, path::PathBuf};

use crate::binaries::profile_folder;

fn folder() -> PathBuf {
    profile_folder().join("left-out")
}

/// Whether the test `name` can run because no program is missing. If not, the test is skipped, and the
/// summary lists it.
///
/// # Panics
/// When a program is missing where CI is set.
#[must_use]
pub fn needs(name: &str, missing: Option<&str>) -> bool {
    let note = folder().join(name);
    let Some(program) = missing else {
        // From an earlier run, before the program was installed.
        let _there_was_none = fs::remove_file(note);
        return true;
    };
    assert!(env::var_os("CI").is_none(), "{program} must be installed where CI is set");
    fs::create_dir_all(folder()).expect("a folder for notes");
    fs::write(note, format!("{program} is not installed")).expect("a note");
    false
}

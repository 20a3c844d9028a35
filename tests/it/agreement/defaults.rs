//! `find-lobby-defaults` is compared with `find-lobby`, but is no member of the workspace: its own lock file
//! and profile are those of the workspace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::artefacts::workspace;

const FOLDER: &str = "tests/find-lobby-defaults";
const REMEDY: &str = "run `cp Cargo.lock tests/find-lobby-defaults/ && cargo update --workspace \
                      --manifest-path tests/find-lobby-defaults/Cargo.toml`";

/// All packages of one name in a lock file.
#[derive(Default)]
struct Locked {
    versions: BTreeSet<String>,
    /// The names of their dependencies.
    dependencies: BTreeSet<String>,
}

fn read(folder: &str, file: &str) -> String {
    fs::read_to_string(workspace().join(folder).join(file)).unwrap()
}

fn locked(folder: &str) -> BTreeMap<String, Locked> {
    let mut packages: BTreeMap<String, Locked> = BTreeMap::new();
    for package in read(folder, "Cargo.lock").split("[[package]]").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"'));
        let locked = packages.entry(value("name = \"").unwrap().to_owned()).or_default();
        locked.versions.insert(value("version = \"").unwrap().to_owned());
        let dependencies = package.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        locked.dependencies.extend(dependencies.filter_map(|of| of.split(' ').next()).map(str::to_owned));
    }
    packages
}

fn release_profile(folder: &str) -> String {
    let manifest = read(folder, "Cargo.toml");
    let (_, profile) = manifest.split_once("[profile.release]\n").unwrap();
    profile.split("\n\n").next().unwrap().trim_end().to_owned()
}

#[test]
fn it_is_locked_as_the_workspace() {
    let (of_workspace, own) = (locked(""), locked(FOLDER));
    let common: Vec<_> = own.iter().filter(|(name, _)| of_workspace.contains_key(*name)).collect();
    assert!(common.len() > 200, "{} packages are in both lock files", common.len());
    for (name, own) in common {
        let same = &of_workspace[name].versions;
        assert!(!own.versions.is_disjoint(same), "{name}: {:?}, {same:?}: {REMEDY}", own.versions);
    }
    for name in ["find-lobby", "shared"] {
        assert_eq!(own[name].dependencies, of_workspace[name].dependencies, "{name}: {REMEDY}");
    }
}

#[test]
fn it_is_built_as_the_workspace() {
    assert_eq!(release_profile(FOLDER), release_profile(""));
}

//! `find-lobby-defaults` is compared with `find-lobby`, but is no member of the workspace: its own lock file
//! and profile are those of the workspace.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::repository;

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
    repository::read(&Path::new(folder).join(file).to_string_lossy())
}

fn locked(text: &str) -> BTreeMap<String, Locked> {
    let mut packages: BTreeMap<String, Locked> = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"'));
        let locked = packages.entry(value("name = \"").unwrap().to_owned()).or_default();
        locked.versions.insert(value("version = \"").unwrap().to_owned());
        let dependencies = package.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        locked.dependencies.extend(dependencies.filter_map(|of| of.split(' ').next()).map(str::to_owned));
    }
    packages
}

/// How many packages two lock files share, and those that differ: in their versions, or, for the packages
/// `whole`, in their dependencies.
fn compared(
    own: &BTreeMap<String, Locked>,
    of_workspace: &BTreeMap<String, Locked>,
    whole: &[&str],
) -> (usize, Vec<String>) {
    let (mut common, mut differing) = (0, Vec::new());
    for (name, own) in own {
        let Some(same) = of_workspace.get(name) else { continue };
        common += 1;
        if own.versions.is_disjoint(&same.versions) {
            differing.push(format!("{name}: {:?}, {:?}", own.versions, same.versions));
        }
        if whole.contains(&name.as_str()) && own.dependencies != same.dependencies {
            differing.push(format!("{name}: {:?}, {:?}", own.dependencies, same.dependencies));
        }
    }
    (common, differing)
}

fn release_profile(manifest: &str) -> &str {
    let (_, profile) = manifest.split_once("[profile.release]\n").unwrap();
    profile.split("\n\n").next().unwrap().trim_end()
}

#[test]
fn it_is_locked_as_the_workspace() {
    let (own, of_workspace) = (locked(&read(FOLDER, "Cargo.lock")), locked(&read("", "Cargo.lock")));
    let whole = ["find-lobby", "shared"];
    assert!(whole.iter().all(|name| own.contains_key(*name) && of_workspace.contains_key(*name)));
    let (common, differing) = compared(&own, &of_workspace, &whole);
    assert!(common > 200, "{common} packages are in both lock files");
    assert_eq!(differing, [""; 0], "{REMEDY}");
}

#[test]
fn it_is_built_as_the_workspace() {
    let (own, of_workspace) = (read(FOLDER, "Cargo.toml"), read("", "Cargo.toml"));
    assert_eq!(release_profile(&own), release_profile(&of_workspace));
}

#[test]
fn a_different_lock_or_profile_is_found() {
    let package = |name: &str, version: u8, dependency: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\ndependencies = [\n \"{dependency}\",\n]\n"
        )
    };
    let [one, other] = [(1, "c"), (2, "d")].map(|(version, dependency)| {
        locked(&[package("a", version, "b"), package("b", 1, dependency)].concat())
    });
    let expected = [r#"a: {"1"}, {"2"}"#, r#"b: {"c"}, {"d"}"#].map(str::to_owned);
    assert_eq!(compared(&one, &other, &["b"]), (2, expected.into()));
    assert_eq!(compared(&one, &one, &["b"]), (2, Vec::new()));
    assert_eq!(release_profile("[a]\n[profile.release]\nb = 1\n\n[c]\nd = 2\n"), "b = 1");
}

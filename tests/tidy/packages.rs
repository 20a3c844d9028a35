//! Which packages have tests, and in which order cargo runs them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regex_lite::Regex;

use crate::repository::{files, read};

/// How the manifest or a source of a function breaks the rule; `None` if none does.
fn tested(manifest: &str, sources: &[&str]) -> Option<&'static str> {
    if manifest.matches("\ntest = false\n").count() != 2 {
        return Some("builds test binaries without a test");
    }
    let has_tests = |source: &&str| source.contains("#[test]") || source.contains("cfg(test)");
    sources.iter().any(has_tests).then_some("has tests that never run")
}

#[test]
fn functions_have_no_tests_of_their_own_since_cargo_does_not_run_any_there() {
    let sources = files(&["rs"]);
    let mut count = 0;
    for manifest in files(&["toml"]).into_keys().filter(|path| path.starts_with("functions")) {
        let folder = manifest.parent().unwrap_or(Path::new(""));
        let own = sources.iter().filter(|(path, _)| path.starts_with(folder));
        let own: Vec<_> = own.map(|(_, source)| source.as_str()).collect();
        assert!(!own.is_empty(), "{} has no source", folder.display());
        assert_eq!(tested(&read(&manifest.to_string_lossy()), &own), None, "{}", folder.display());
        count += 1;
    }
    assert!(count > 30, "only {count} functions");
}

#[test]
fn a_test_of_a_function_is_found() {
    let manifest = "[lib]\ntest = false\n[[bin]]\ntest = false\n";
    assert_eq!(tested(manifest, &["fn main() {}"]), None);
    assert_eq!(tested(manifest, &["", "#[cfg(test)] mod tests;"]), Some("has tests that never run"));
    assert_eq!(tested("[lib]\ntest = false\n", &[]), Some("builds test binaries without a test"));
}

/// The name of the package in each folder, of those with a manifest.
fn names() -> BTreeMap<String, String> {
    let manifests = files(&["toml"]).into_iter().filter(|(path, _)| path.ends_with("Cargo.toml"));
    let name = |(path, text): (PathBuf, String)| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))?;
        Some((path.parent()?.to_string_lossy().into_owned(), name.to_owned()))
    };
    manifests.filter_map(name).collect()
}

/// The folder whose tests cargo runs last.
fn last(names: &BTreeMap<String, String>) -> Option<&str> {
    names.iter().max_by_key(|(_, name)| *name).map(|(folder, _)| folder.as_str())
}

/// Cargo runs tests in the order of their packages' names.
#[test]
fn the_summary_of_what_was_left_out_comes_last() {
    let names = names();
    assert!(names.len() > 50, "{names:?}");
    assert_eq!(last(&names), Some("tests/summary"));
    let other = [("tests/summary", "summary"), ("tests/tidy", "tidy")];
    assert_eq!(
        last(&other.map(|(folder, name)| (folder.to_owned(), name.to_owned())).into()),
        Some("tests/tidy")
    );
}

/// Manifests of clients in other languages than Rust, and what npm locks of them.
const MANIFESTS: [&str; 3] = ["package.json", "package-lock.json", "pyproject.toml"];

#[test]
fn clients_have_the_version_of_the_workspace() {
    let version = Regex::new(r#"(?m)^ *"?version"?(?:: | = )"([^"]+)""#).unwrap();
    let first = |text: &str| version.captures(text).map(|found| found[1].to_owned());
    let expected = first(&read("Cargo.toml"));
    let mut count = 0;
    for (path, text) in files(&["json", "toml"]) {
        if path.starts_with("infra/clients") && MANIFESTS.iter().any(|name| path.ends_with(name)) {
            assert_eq!(first(&text), expected, "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= MANIFESTS.len(), "only {count} manifests");
}

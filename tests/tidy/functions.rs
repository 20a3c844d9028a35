//! Functions have no tests of their own, since cargo does not run any there.

use std::path::Path;

use crate::repository::{files, read};

/// Why a function would have tests, if it would: by its manifest or by one of its sources.
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

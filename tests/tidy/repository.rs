//! The repository's files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What is built or fetched, and nothing of ours.
const FOREIGN_FOLDERS: [&str; 6] = ["target", "node_modules", "dist", ".git", ".venv", ".aws-sam"];

/// The workspace's folder.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text of a file, by its path from the workspace's folder.
pub fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The path of every file, from the workspace's folder.
pub fn paths() -> Vec<PathBuf> {
    let root = fs::canonicalize(workspace()).unwrap();
    let (mut paths, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if !path.is_dir() {
                paths.push(path.strip_prefix(&root).unwrap().to_owned());
            } else if !FOREIGN_FOLDERS.contains(&&*name) {
                folders.push(path);
            }
        }
    }
    paths.sort();
    paths
}

/// Every file of these kinds by its path from the workspace's folder.
pub fn files(extensions: &[&str]) -> BTreeMap<PathBuf, String> {
    let is_wanted =
        |path: &PathBuf| path.extension().is_some_and(|kind| extensions.iter().any(|wanted| kind == *wanted));
    let text = |path: PathBuf| (path.clone(), fs::read_to_string(workspace().join(path)).unwrap());
    paths().into_iter().filter(is_wanted).map(text).collect()
}

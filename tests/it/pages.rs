//! Pages and comments: links of pages have targets, the first page stays short, and comments are narrow and
//! cite only numbered decisions.

#![expect(clippy::unwrap_used, reason = "this is test code: what cannot go on panics")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use harness::binaries::workspace;
use regex_lite::Regex;

/// The most words of the page that a new user reads first.
const README_WORDS_MAX: usize = 1_500;

/// What is built or fetched, and no page of ours.
const FOREIGN_FOLDERS: [&str; 5] = ["target", "node_modules", ".git", ".venv", ".aws-sam"];

/// The widest comment, in columns.
const COMMENT_COLUMNS_MAX: usize = 110;

/// Every page by its path from the workspace's folder.
fn pages() -> BTreeMap<PathBuf, String> {
    files(&["md"])
}

/// Every file of these kinds by its path from the workspace's folder.
fn files(extensions: &[&str]) -> BTreeMap<PathBuf, String> {
    let root = fs::canonicalize(workspace()).unwrap();
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let extension = path.extension().map(|extension| extension.to_string_lossy());
            if path.is_dir() && !FOREIGN_FOLDERS.contains(&&*name) {
                folders.push(path);
            } else if extension.is_some_and(|extension| extensions.contains(&&*extension)) {
                files
                    .insert(path.strip_prefix(&root).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

/// The lines of a file that are comments, with their numbers.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_comment = |line: &str| ["//", "# "].iter().any(|start| line.trim_start().starts_with(start));
    (1..).zip(text.lines()).filter(move |(_, line)| is_comment(line))
}

/// The text outside of fenced code.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The anchors of a page's headings, as GitHub makes them: a second heading of the same words gets `-1`.
fn anchors(page: &str) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(page).lines() {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let title = link.replace_all(title.trim(), "$1").to_lowercase();
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let anchor: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let before = count.entry(anchor.clone()).or_default();
        anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// Where the links of a page lead, those to other hosts left out.
fn links(page: &str) -> Vec<String> {
    let code = Regex::new(r"`[^`]*`").unwrap();
    let link = Regex::new(r"\]\(([^)\s]+)[^)]*\)").unwrap();
    let prose = prose(page);
    let prose = code.replace_all(&prose, "");
    let targets = link.captures_iter(&prose).map(|found| found.get(1).unwrap().as_str().to_owned());
    targets.filter(|target| !target.starts_with("https://")).collect()
}

/// `folder` joined with a relative path, without `.` and `..`.
fn joined(folder: &Path, relative: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(relative).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{relative} leaves the repository"),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[test]
fn every_link_of_every_page_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let (mut broken, mut followed) = (Vec::new(), 0);
    for (path, page) in &pages {
        for target in links(page) {
            followed += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { path.clone() } else { joined(path.parent().unwrap(), file) };
            let has_anchor = || pages.get(&file).is_some_and(|page| anchors(page).contains(anchor));
            if !workspace().join(&file).exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
    assert!(pages.len() > 10 && followed > 50, "{} pages with {followed} links", pages.len());
}

#[test]
fn links_and_anchors_are_read_as_github_reads_them() {
    let page = "# A `b_c`, d & [e](f.md)\n## Twice\n## Twice\n#none\n```\n# code\n[x](gone.md)\n```\n\
                [a](b.md#c) ![d](e.svg \"title\") `[f](g.md)` [h](https://example.com/) [i](#j)\n";
    let expected = ["a-b_c-d--e", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
    assert_eq!(links(page), ["f.md", "b.md#c", "e.svg", "#j"]);
}

#[test]
fn the_readme_stays_short() {
    let words = fs::read_to_string(workspace().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= README_WORDS_MAX, "{words} words");
}

#[test]
fn comments_are_narrow() {
    let mut wide = Vec::new();
    for (path, text) in files(&["rs", "toml", "yaml", "yml"]) {
        let found = comments(&text).filter(|(_, line)| line.chars().count() > COMMENT_COLUMNS_MAX);
        wide.extend(found.map(|(number, _)| format!("{}:{number}", path.display())));
    }
    assert_eq!(wide, [""; 0]);
}

#[test]
fn comments_cite_numbered_decisions_alone() {
    let decisions = fs::read_to_string(workspace().join("infra/docs/decisions.md")).unwrap();
    let is_there = |number: &str| decisions.lines().any(|line| line.contains(&format!("# {number}. ")));
    let cited = Regex::new(r"\bdecisions? (\d+)").unwrap();
    let unnumbered = Regex::new(r"\bdecisions on\b|\binterface \d|\bdesign on\b").unwrap();
    let mut count = 0;
    for (path, text) in files(&["rs", "toml", "yaml", "yml"]) {
        for (number, line) in comments(&text) {
            let place = format!("{}:{number}", path.display());
            assert!(!unnumbered.is_match(line), "{place}");
            for found in cited.captures_iter(line) {
                assert!(is_there(&found[1]), "{place}: decision {}", &found[1]);
                count += 1;
            }
        }
    }
    assert!(count > 20, "only {count} citations were found");
}

//! Pages and comments: links of pages have targets, the first pages stay short, and comments are narrow and
//! cite only numbered decisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use regex_lite::Regex;

use crate::repository::{files, read, workspace};

/// The most words of the pages that a new user and a new contributor read first.
const WORDS_MAX: [(&str, usize); 2] = [("README.md", 1_500), ("ARCHITECTURE.md", 2_000)];

/// The widest comment, in columns.
const COMMENT_COLUMNS_MAX: usize = 110;

/// Kinds of files whose comments are judged.
const COMMENTED: [&str; 4] = ["rs", "toml", "yaml", "yml"];

/// Every page by its path from the workspace's folder.
fn pages() -> BTreeMap<PathBuf, String> {
    files(&["md"])
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

/// The links of pages that lead to no file, or to no heading.
fn broken(pages: &BTreeMap<PathBuf, String>, has_file: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, page) in pages {
        for target in links(page) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { path.clone() } else { joined(path.parent().unwrap(), file) };
            let has_anchor = || pages.get(&file).is_some_and(|page| anchors(page).contains(anchor));
            if !has_file(&file) || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    broken
}

#[test]
fn every_link_of_every_page_leads_to_a_file_and_a_heading() {
    let pages = pages();
    assert_eq!(broken(&pages, |file| workspace().join(file).exists()), [""; 0]);
    let followed: usize = pages.values().map(|page| links(page).len()).sum();
    assert!(pages.len() > 10 && followed > 50, "{} pages with {followed} links", pages.len());
}

#[test]
fn a_broken_link_is_found() {
    let page = "# Here\n[a](#here) [b](#there) [c](../d/e.md) [f](../d/gone.md) [g](../d/e.md#h)\n";
    let pages = [("i/page.md", page), ("d/e.md", "# J\n")];
    let pages = pages.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
    let found = broken(&pages, |file| pages.contains_key(file));
    assert_eq!(found, ["#there", "../d/gone.md", "../d/e.md#h"].map(|link| format!("i/page.md: {link}")));
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
fn the_first_pages_stay_short() {
    for (page, most) in WORDS_MAX {
        let words = read(page).split_whitespace().count();
        println!("words of {page}: {words}");
        assert!((1..=most).contains(&words), "{page}: {words} words are more than {most}");
    }
}

/// The numbers of the lines that are too wide a comment.
fn wide(text: &str) -> Vec<usize> {
    let wide = comments(text).filter(|(_, line)| line.chars().count() > COMMENT_COLUMNS_MAX);
    wide.map(|(number, _)| number).collect()
}

#[test]
fn comments_are_narrow() {
    let mut found = Vec::new();
    for (path, text) in files(&COMMENTED) {
        found.extend(wide(&text).into_iter().map(|number| format!("{}:{number}", path.display())));
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_wide_comment_is_found() {
    let of = |columns: usize| "x".repeat(columns);
    let text = format!("//{}\n//{}\n  # {}\nlet {};\n", of(108), of(109), of(107), of(200));
    assert_eq!(wide(&text), [2, 3]);
}

/// Comments that cite what is no numbered decision, and how many cite one.
fn wrong_citations(text: &str, decisions: &str) -> (Vec<String>, usize) {
    let is_there = |number: &str| decisions.lines().any(|line| line.contains(&format!("# {number}. ")));
    let cited = Regex::new(r"\bdecisions? (\d+)").unwrap();
    let unnumbered = Regex::new(r"\bdecisions on\b|\binterface \d|\bdesign on\b").unwrap();
    // Patterns are slow without optimisation.
    let may_cite = |line: &str| ["decision", "interface", "design"].iter().any(|word| line.contains(word));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (number, line) in comments(text).filter(|(_, line)| may_cite(line)) {
        let absent = cited.captures_iter(line).filter(|found| !is_there(&found[1])).count();
        count += cited.find_iter(line).count();
        if absent > 0 || unnumbered.is_match(line) {
            wrong.push(format!("{number}: {}", line.trim()));
        }
    }
    (wrong, count)
}

#[test]
fn comments_cite_numbered_decisions_alone() {
    let decisions = read("infra/docs/decisions.md");
    let mut count = 0;
    for (path, text) in files(&COMMENTED) {
        let (wrong, cited) = wrong_citations(&text, &decisions);
        assert_eq!(wrong, [""; 0], "{}", path.display());
        count += cited;
    }
    assert!(count > 20, "only {count} citations were found");
}

#[test]
fn a_wrong_citation_is_found() {
    let text = "// decision 1\n# decision 2\n/// see the design on locks\nlet decision = 3;\n";
    let (wrong, cited) = wrong_citations(text, "## 1. Locks\n");
    assert_eq!((wrong, cited), (vec!["2: # decision 2".into(), "3: /// see the design on locks".into()], 2));
}

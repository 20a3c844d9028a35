//! Each folder has a budget of lines of code: a row of `budget.txt`.
//!
//! Code is Rust, Python, JavaScript, CSS, HTML, Java and scripts of the shell. Data is not: manifests,
//! templates, documents, events, pages. Blank lines and comments are left out, and of Rust the modules under
//! `#[cfg(test)]`, in the file or in one of their own. A line with code and a comment counts, and so do
//! Python's docstrings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{
    limits::misfit,
    repository::{paths, workspace},
};

const BUDGET: &str = include_str!("budget.txt");

/// Folders whose own folders have a row each.
const GROUPS: [&str; 2] = ["infra", "tests"];

/// The signs that begin a line of comment, and those around longer comments.
type Comments = (&'static [&'static str], Option<(&'static str, &'static str)>);

const C: Comments = (&["//"], Some(("/*", "*/")));
const SCRIPT: Comments = (&["#"], None);

/// The comments of a file of code; `None` for a file that is not code.
fn comments(path: &Path, text: &str) -> Option<Comments> {
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("rs" | "js" | "mjs" | "ts" | "css" | "java" | "cs" | "go") => Some(C),
        Some("py" | "sh" | "gd") => Some(SCRIPT),
        Some("html") => Some((&[], Some(("<!--", "-->")))),
        None if text.starts_with("#!") => Some(SCRIPT),
        _ => None,
    }
}

/// The lines of code in a file.
fn lines(text: &str, (starts, around): Comments) -> usize {
    let (mut count, mut is_comment) = (0, false);
    for line in text.lines().map(str::trim) {
        if let Some((open, close)) = around
            && (is_comment || line.starts_with(open))
        {
            is_comment = !line.contains(close);
        } else if !line.is_empty() && !starts.iter().any(|start| line.starts_with(start)) {
            count += 1;
        }
    }
    count
}

/// Rust without its modules of tests, and the names of those that are files of their own.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut code, mut files) = (String::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_test = line.trim() == "#[cfg(test)]" || line.trim().starts_with("#[cfg(all(test,");
        let module = lines.peek().and_then(|next| next.trim().strip_prefix("mod "));
        match module.filter(|_| is_test) {
            None => code.extend([line, "\n"]),
            Some(module) if module.ends_with(';') => {
                files.push(module.trim_end_matches(';').to_owned());
                lines.next();
            }
            // As rustfmt writes it, the module ends at the first brace that stands where it begins.
            Some(_) => {
                let end = format!("{}}}", line.split('#').next().unwrap_or_default());
                lines.by_ref().find(|line| *line == end);
            }
        }
    }
    (code, files)
}

/// The folder whose budget counts a file.
fn folder(path: &Path) -> String {
    let parent = path.parent().unwrap_or(Path::new(""));
    let names: Vec<_> = parent.iter().map(|name| name.to_string_lossy()).collect();
    match &names[..] {
        [] => ".".to_owned(),
        [group, own, ..] if GROUPS.contains(&&**group) => format!("{group}/{own}"),
        [top, ..] => top.clone().into_owned(),
    }
}

/// The lines of code of each folder.
fn figures(files: &BTreeMap<PathBuf, String>) -> BTreeMap<String, usize> {
    let (mut counts, mut tests) = (Vec::new(), BTreeSet::new());
    for (path, text) in files {
        let Some(comments) = comments(path, text) else { continue };
        let is_rust = path.extension().is_some_and(|kind| kind == "rs");
        let (code, modules) = if is_rust { without_tests(text) } else { (text.clone(), Vec::new()) };
        counts.push((path, lines(&code, comments)));
        let is_root = matches!(path.file_stem().and_then(|name| name.to_str()), Some("lib" | "main" | "mod"));
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        tests.extend(modules.iter().map(|module| folder.join(module)));
    }
    let mut figures = BTreeMap::new();
    for (path, count) in counts {
        if !path.ancestors().any(|above| tests.contains(&above.with_extension(""))) {
            *figures.entry(folder(path)).or_default() += count;
        }
    }
    figures
}

/// The limits of a table: a folder and a number in each row.
fn limits(table: &str) -> BTreeMap<String, usize> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let row = |row: &str| {
        let (folder, limit) = row.split_once(' ').unwrap_or_else(|| panic!("no row: {row}"));
        (folder.to_owned(), limit.trim().parse().unwrap_or_else(|error| panic!("{row}: {error}")))
    };
    rows.map(row).collect()
}

/// The step in which a limit is written.
fn step(limit: usize) -> usize {
    if limit > 1_000 { 100 } else { 50 }
}

/// Folders that do not fit their limits, and those that lack one.
fn misfits(figures: &BTreeMap<String, usize>, limits: &BTreeMap<String, usize>) -> Vec<String> {
    let gone = limits.keys().filter(|folder| !figures.contains_key(*folder));
    let mut found: Vec<_> = gone.map(|folder| format!("{folder}: no code, remove its row")).collect();
    for (folder, lines) in figures {
        found.extend(match limits.get(folder) {
            Some(limit) => misfit(folder, *lines, *limit, step(*limit)),
            None => Some(format!("{folder}: {lines} lines of code and no row: give it a budget")),
        });
    }
    found
}

/// Prints the figures, too: `cargo test -p tidy budget -- --nocapture`.
#[test]
fn each_folder_keeps_its_budget() {
    let is_text = |path: &PathBuf| comments(path, "#!").is_some();
    let text = |path: PathBuf| {
        let bytes = fs::read(workspace().join(&path)).unwrap();
        (path, String::from_utf8_lossy(&bytes).into_owned())
    };
    let (figures, limits) =
        (figures(&paths().into_iter().filter(is_text).map(text).collect()), limits(BUDGET));
    for (folder, lines) in &figures {
        println!("{folder}: {lines} of {}", limits.get(folder).unwrap_or(&0));
    }
    let misfits = misfits(&figures, &limits);
    assert!(misfits.is_empty(), "tests/tidy/budget.txt, in lines of code:\n{}", misfits.join("\n"));
}

#[test]
fn lines_of_code_are_counted_by_folder() {
    let rust = "\
        //! Page.\n\nuse a;\n\n#[cfg(test)]\nmod deep;\n\n/// Doc.\nfn f() {} // x\n/* long\ncomment */\n\
        #[cfg(test)]\nfn g() {}\n\n#[cfg(test)]\nmod tests {\n    fn h() {\n    }\n}\nfn i() {}\n";
    let files = [
        ("shared/src/a.rs", rust, 5),
        ("shared/src/a/deep.rs", "fn only_in_tests() {}\n", 0),
        ("shared/src/a/deep/more.rs", "fn only_in_tests() {}\n", 0),
        ("shared/src/deep.rs", "fn f() {}\n", 1),
        ("infra/b/page/c.html", "<!-- a\nb -->\n<p>\n", 1),
        ("infra/b/d.py", "# a\nb = 1\n\n\"\"\"c\"\"\"\n", 2),
        ("infra/b/e.json", "{}\n", 0),
        ("tests/f.js", "// a\nb()\n", 1),
        (".ci/run", "#!/usr/bin/env bash\n# a\nb\n", 1),
        ("g.sh", "h\n", 1),
    ];
    for (path, text, count) in files {
        let alone = figures(&[(PathBuf::from(path), text.to_owned())].into());
        assert!(count == 0 || alone == [(folder(Path::new(path)), count)].into(), "{path}: {alone:?}");
    }
    let found = figures(&files.map(|(path, text, _)| (PathBuf::from(path), text.to_owned())).into());
    let expected = [(".", 1), (".ci", 1), ("infra/b", 3), ("shared", 6), ("tests", 1)];
    assert_eq!(found, expected.map(|(folder, count)| (folder.to_owned(), count)).into());
}

#[test]
fn a_folder_over_its_budget_far_below_it_or_without_one_is_found() {
    let figures = [("a", 1_001), ("b", 3_500), ("c", 20), ("d", 100), ("f", 890)];
    let figures = figures.map(|(folder, count)| (folder.to_owned(), count)).into();
    let limits = limits("# A comment.\na 1000\nb 4000\nd 100\ne 50\nf 1000\n");
    let expected = [
        "e: no code, remove its row",
        "a: 1001 exceeds 1000: raise the limit in the same commit and say why in its message",
        "b: 3500 is over 10 % below 4000: lower the limit in the same commit",
        "c: 20 lines of code and no row: give it a budget",
        "f: 890 is over 10 % below 1000: lower the limit in the same commit",
    ];
    assert_eq!(misfits(&figures, &limits), expected);
}

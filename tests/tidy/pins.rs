//! What is fetched is exact: programs of Python by their hashes, actions of workflows by their commits.

use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::repository::{files, read};

/// What a file locked by pip lacks of that which another one asks for.
fn unlocked(wanted: &str, locked: &str) -> Vec<String> {
    let requirement = Regex::new(
        r"(?m)^([a-z0-9._-]+)(\[[^\]]+\])?==(\S+)([^\n]*)\n((?:    --hash=sha256:[0-9a-f]{64}[^\n]*\n)*)",
    )
    .unwrap();
    let (mut found, mut wrong) = (BTreeSet::new(), Vec::new());
    for one in requirement.captures_iter(locked) {
        let name = format!("{}{}=={}", &one[1], one.get(2).map_or("", |it| it.as_str()), &one[3]);
        if one[5].is_empty() {
            wrong.push(format!("{name} has no hash"));
        }
        found.insert(name);
    }
    let lines = locked.lines().filter(|line| !line.starts_with([' ', '#'])).count();
    if found.len() != lines {
        wrong.push(format!("{lines} lines are not {} requirements", found.len()));
    }
    let wanted = wanted.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
    // pip 23 does not see that a package with extras is that package.
    let extras = Regex::new(r"\[.*\]").unwrap();
    let plain = found.iter().map(|one| extras.replace(one, "").into_owned());
    let missing = wanted.chain(plain).filter(|wanted| !found.contains(wanted));
    wrong.extend(missing.map(|wanted| format!("{wanted} is not locked")));
    wrong
}

#[test]
fn programs_of_python_are_exact_with_all_that_they_need() {
    for name in [
        "requirements",
        "conformance-requirements",
        "deployed-requirements",
        "godot-requirements",
        "python-client-requirements",
    ] {
        let (wanted, locked) = (read(&format!(".ci/{name}.in")), read(&format!(".ci/{name}.txt")));
        assert!(locked.contains("--hash="), "{name} is empty");
        assert_eq!(unlocked(&wanted, &locked), [""; 0], "{name}: run .ci/lock-python");
    }
}

#[test]
fn an_inexact_program_of_python_is_found() {
    let hash = format!("    --hash=sha256:{}", "0".repeat(64));
    let wanted = "# comment\na[b]==1\nc==2\n";
    assert_eq!(unlocked(wanted, &format!("a==1 \\\n{hash}\na[b]==1 \\\n{hash}\nc==2 \\\n{hash}\n")), [""; 0]);
    let locked = format!("a[b]==1 \\\n{hash}\nd==3\ne>=4\n");
    let wrong =
        ["d==3 has no hash", "3 lines are not 2 requirements", "c==2 is not locked", "a==1 is not locked"];
    assert_eq!(unlocked(wanted, &locked), wrong);
}

/// The actions of a workflow, and those among them that are pinned to no commit.
fn actions(workflow: &str) -> (usize, Vec<String>) {
    let used = Regex::new(r"(?m)^\s*(?:- )?uses: (.*)$").unwrap();
    let pinned = Regex::new(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9.]+$|^\./").unwrap();
    let all: Vec<_> = used.captures_iter(workflow).map(|found| found[1].to_owned()).collect();
    (all.len(), all.into_iter().filter(|action| !pinned.is_match(action)).collect())
}

#[test]
fn workflows_use_actions_by_their_commit_alone() {
    let mut count = 0;
    for (path, text) in files(&["yml", "yaml"]) {
        if path.starts_with(".github/workflows") {
            let (all, loose) = actions(&text);
            assert_eq!(loose, [""; 0], "{}", path.display());
            count += all;
        }
    }
    assert!(count > 5, "{count} actions are not all");
}

#[test]
fn an_action_without_a_commit_is_found() {
    let commit = "0".repeat(40);
    let workflow =
        format!("  - uses: a/b@{commit} # v1.2\n    uses: ./c\n  - uses: d/e@v3\n  - uses: f/g@{commit}\n");
    assert_eq!(actions(&workflow), (4, vec!["d/e@v3".into(), format!("f/g@{commit}")]));
}

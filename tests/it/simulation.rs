//! A few simulated runs, and that nothing escapes the simulation: conditions, or a second run of the same
//! seed.

use std::collections::BTreeSet;

use model::conditions::{self, clauses};
use simulation::{
    Options,
    mutations::{Elsewhere, RARE},
    report, run,
};

/// Seeds of a test's run; the benchmark runs thousands.
const SEEDS: u64 = 24;
/// What is done in each of them.
const ACTIONS_MAX: u64 = 10;

#[test]
fn what_holds_in_every_run_holds_in_a_few() {
    let options = Options { actions_max: Some(ACTIONS_MAX), ..Options::default() };
    let failed: Vec<String> = (0..SEEDS)
        .filter_map(|seed| {
            let outcome = run(seed, &options);
            let failure = outcome.failure.as_ref()?;
            Some(format!("{}\n{}", outcome.trace.join("\n"), report(seed, &options, failure)))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    let actions_max = Some(ACTIONS_MAX);
    let options = Options { has_digest: true, keeps_trace: true, actions_max, ..Options::default() };
    for seed in 0..3 {
        let (first, second) = (run(seed, &options), run(seed, &options));
        let differs = first.trace.iter().zip(&second.trace).position(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!((first.trace.len(), first.digest), (second.trace.len(), second.digest), "seed {seed}");
    }
}

/// The store's files whose writes belong to matchmaking.
const SOURCES: &[(&str, &str)] = &[
    ("allotment", include_str!("../../shared/src/store/allotment.rs")),
    ("creation", include_str!("../../shared/src/store/creation.rs")),
    ("ending", include_str!("../../shared/src/store/ending.rs")),
    ("lobbies", include_str!("../../shared/src/store/lobbies.rs")),
    ("lobby_data", include_str!("../../shared/src/store/lobby_data.rs")),
    ("launching", include_str!("../../shared/src/store/launching.rs")),
    ("nursery", include_str!("../../shared/src/store/nursery.rs")),
    ("holds", include_str!("../../shared/src/store/holds.rs")),
    ("seats", include_str!("../../shared/src/store/seats.rs")),
    ("replays", include_str!("../../shared/src/store/replays.rs")),
    ("servers", include_str!("../../shared/src/store/servers.rs")),
    ("transitions", include_str!("../../shared/src/store/transitions.rs")),
];

/// Literals that are assignments, which a write may have or not.
const ASSIGNMENTS: &[&str] = &[
    "#failure = :failure",
    "#generations = :tokens",
    "#joinable_from = :lapse",
    "#stage = :over",
    "#vacated_at = :now",
];

/// Literals that are conditions of queries, not of writes.
const KEY_CONDITIONS: &[&str] = &[
    "#pool = :pool AND #joinable_from <= :now",
    "#tag_set = :tag_set AND #joinable_from <= :now",
    "#pool = :pool AND #room >= :room",
    "#server = :server",
    "#placement_pool = :pool AND #free_from <= :time",
    "#placement_pool = :pool AND #free_from > :time",
];

#[test]
fn every_condition_in_the_store_is_listed() {
    let known: BTreeSet<String> = conditions::all().iter().map(|known| known.clause.to_owned()).collect();
    let mut missing = Vec::new();
    let mut scanned = 0;
    for (file, source) in SOURCES {
        for literal in literals(source) {
            if KEY_CONDITIONS.contains(&literal.as_str()) || !is_condition(&literal) {
                continue;
            }
            for clause in clauses(&literal) {
                // Pieces that the code fills in are literals of their own.
                if clause.contains('{') || !is_condition(&clause) {
                    continue;
                }
                scanned += 1;
                let part = format!("OR {}", clause.trim_start_matches("OR "));
                let is_part = known.iter().any(|known| *known == clause || known.contains(&part));
                if !is_part {
                    missing.push(format!("{file}: {clause}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "conditions::all() lacks:\n{}", missing.join("\n"));
    assert!(scanned > 50, "only {scanned} clauses were recognised: has the store's style changed?");
}

#[test]
fn what_runs_notice_rarely_is_noticed_elsewhere() {
    let table = include_str!("../model/README.md");
    let tests = [
        include_str!("elections.rs"),
        include_str!("lifecycle/starts.rs"),
        include_str!("on_demand.rs"),
        include_str!("seating/replays.rs"),
    ];
    let tests = tests.concat();
    for (write, clause, elsewhere) in RARE {
        let is_noticed = match elsewhere {
            Elsewhere::Model => table.contains(&format!("| {write} | `{clause}` | I")),
            Elsewhere::Test(name) => tests.contains(&format!("async fn {name}() {{")),
        };
        assert!(is_noticed, "{write}: {clause}");
    }
}

/// The string literals of a source file, lines joined as the compiler joins them; comments may look like
/// literals, tests are left out.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut literals = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find('"') {
        let body = &rest[start + 1..];
        let Some(end) = body.find('"') else { break };
        let joined: Vec<&str> = body[..end].split("\\\n").map(str::trim_start).collect();
        literals.push(joined.concat().trim().to_owned());
        rest = &body[end + 1..];
    }
    literals
}

/// Whether a text compares attributes, and changes none.
fn is_condition(text: &str) -> bool {
    let compares =
        [" = :", " <> :", " < ", " <= ", " > ", " >= ", " IN ("].iter().any(|sign| text.contains(sign));
    let names = text.contains('#') && !text.contains("SET ") && !text.contains("REMOVE ");
    names
        && !text.starts_with(',')
        && !ASSIGNMENTS.contains(&text)
        && (compares || text.contains("attribute_"))
}

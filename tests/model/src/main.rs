//! `cargo run --bin model`: every state of every configuration of the model of matchmaking.
//!
//! Prints each configuration's states, and the steps to a state in which an invariant fails; ends in failure
//! then. `-- --mutations` takes each condition of the store's writes away, one at a time, and writes what
//! fails then to `tests/model/README.md`; `--of WRITE` prints that of one write. `--check` compares with the
//! committed table instead: the states and the list of conditions, or with `--mutations` all of it. `--trace
//! NAME` checks one configuration alone, an open finding, too; `--without "WRITE: CLAUSE"` without one
//! condition.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program that panics on failure and prints its figures"
)]

use std::{
    fs,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use model::{
    Configuration, Outcomes, check,
    conditions::{self, Condition},
    configurations::{OPEN_FINDINGS, all},
    mutations::{Found, left_out, search},
    report::{lists_every_condition, mutations, without_mutations},
};

/// The committed table.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

/// The command line's options.
#[derive(Default)]
struct Arguments {
    mutates: bool,
    checks: bool,
    of: Option<String>,
    trace: Option<String>,
    without: Option<Condition>,
}

impl Arguments {
    fn read() -> Self {
        let mut arguments = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--mutations" => arguments.mutates = true,
                "--check" => arguments.checks = true,
                "--of" => arguments.of = words.next(),
                "--trace" => arguments.trace = words.next(),
                "--without" => arguments.without = words.next().map(|text| condition(&text)),
                other => panic!("what is {other}?"),
            }
        }
        arguments
    }
}

fn condition(text: &str) -> Condition {
    let all = conditions::all();
    let named = all.iter().find(|condition| condition.to_string() == text);
    *named.unwrap_or_else(|| panic!("no such condition: {text}"))
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    if let Some(name) = &arguments.trace {
        return trace(name, arguments.without);
    }
    let outcomes = side_by_side(&all(), |configuration| {
        let outcomes = check(*configuration, None);
        print(&outcomes);
        outcomes
    });
    let states: usize = outcomes.iter().map(|outcomes| outcomes.states).sum();
    let seconds: f64 = outcomes.iter().map(|outcomes| outcomes.seconds).sum();
    println!("{states} states in {seconds:.0} s of computing");
    let outcomes: Vec<(Configuration, Outcomes)> = all().into_iter().zip(outcomes).collect();
    let mut failed = outcomes.iter().any(|(_, outcomes)| outcomes.violation.is_some());
    for condition in conditions::all() {
        let is_evaluated = outcomes.iter().any(|(_, outcomes)| outcomes.evaluated.contains(&condition));
        if is_evaluated == left_out(condition).is_some() {
            eprintln!(
                "{condition}: {}",
                if is_evaluated { "left out, yet evaluated" } else { "never evaluated" }
            );
            failed = true;
        }
    }
    let mut text = without_mutations(&outcomes, &findings());
    if arguments.mutates || arguments.of.is_some() {
        let found = mutate(arguments.of.as_deref().unwrap_or_default(), &outcomes);
        for found in found.iter().filter(|found| found.is_unexpected()) {
            eprintln!("contradicts its verdict: {}", found.row());
            failed = true;
        }
        text += &mutations(&found);
    }
    if arguments.checks {
        let committed = fs::read_to_string(TABLE).expect("the committed table");
        let is_same = if arguments.mutates {
            committed == text
        } else {
            committed.starts_with(&text) && lists_every_condition(&committed)
        };
        if !is_same {
            eprintln!("tests/model/README.md is not what the model says: run with --mutations");
            failed = true;
        }
    } else if arguments.mutates {
        fs::write(TABLE, text).expect("the table is written");
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What the product is known not to keep, as it is seen now.
fn findings() -> Vec<(Outcomes, &'static str)> {
    let findings = OPEN_FINDINGS.iter().map(|(configuration, what)| {
        let outcomes = check(*configuration, None);
        let fails = outcomes.violation.as_ref().map_or("nothing", |violation| violation.name());
        println!("open finding, {}: {fails} fails", outcomes.name);
        (outcomes, *what)
    });
    findings.collect()
}

fn mutate(of: &str, outcomes: &[(Configuration, Outcomes)]) -> Vec<Found> {
    let chosen: Vec<Condition> = conditions::all()
        .into_iter()
        .filter(|condition| left_out(*condition).is_none() && condition.to_string().starts_with(of))
        .collect();
    side_by_side(&chosen, |condition| {
        let found = search(*condition, outcomes);
        println!("{}", found.row());
        found
    })
}

fn trace(name: &str, without: Option<Condition>) -> ExitCode {
    let known = all().into_iter().chain(OPEN_FINDINGS.iter().map(|(configuration, _)| *configuration));
    let configuration = known.into_iter().find(|known| known.name == name).expect("a configuration's name");
    let outcomes = check(configuration, without);
    print(&outcomes);
    if outcomes.violation.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(outcomes: &Outcomes) {
    let Outcomes { name, states, depth, seconds, violation, .. } = outcomes;
    match violation {
        Some(violation) => println!("{name}: {violation}"),
        None => println!("{name}: {states} states, depth {depth}, {seconds:.1} s, every property holds"),
    }
}

/// Does `work` for each of `items` on all cores, and returns the results in their order.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    done.lock().expect("no panic").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

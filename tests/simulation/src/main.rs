//! `cargo run --profile bench --bin simulation`: thousands of seeded runs of the shipped operations, each
//! checked step by step.
//!
//! `-- --seeds N` runs the seeds below N, `--from M` those from M on, every other of them with more of what
//! leads to one of the writes; `--bias WRITE` all with more of what leads to that one. `--seed N` replays
//! one, `--trace` with everything that happened, `--tolerate "TEXT|TEXT"` passing over failures whose text
//! has one, `--without "WRITE: CLAUSE"` without one condition. A seed that fails prints the line that replays
//! it. `--mutations` takes every condition away, one at a time, and writes what notices to
//! `tests/simulation/README.md`, with `--of WRITE` those of one write alone; `--draw N --from M` takes N of
//! those that were noticed within forty seeds, drawn by M.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a program of the tests panics on failure and prints its figures"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use mimalloc::MiMalloc;
use model::conditions::{self, Condition, Write};
use simulation::{
    Options, Outcome,
    mutations::{Found, search},
    replay, report, run,
};

/// As the local stack has it: a run is many small strings, too.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Seeds of a run without arguments.
const SEEDS: u64 = 10_000;
/// Seeds after which progress is printed.
const PROGRESS: u64 = 500;
/// Seeds run without each condition whose loss may go unnoticed.
const MUTATION_SEEDS: u64 = 400;

/// The highest seed in the committed table for a condition to be drawn: a search takes a second for each seed
/// before it.
const DRAWN_SEED_MAX: u64 = 40;
/// The committed table.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

/// What stands above the table of conditions.
const TABLE_HEAD: &str = "# What each condition keeps from going wrong

`cargo run --profile bench --bin simulation -- --mutations` takes every condition of matchmaking's writes away, one at
a time, and runs seeds until an invariant breaks that holds with it. The runs do more of what leads to its write. That write
is often delayed and delivered twice, while most other requests use the same item.
Replay: `-- --seed SEED --without \"WRITE: CONDITION\"`.

| write | condition | found by | seed |
|---|---|---|---|
";

/// The command line's options.
#[derive(Default)]
struct Arguments {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    /// A prefix of the conditions to remove; `None` to remove none.
    mutations: Option<String>,
    /// How many of them to draw; `None` for all.
    drawn: Option<usize>,
    options: Options,
}

impl Arguments {
    fn read() -> Self {
        let mut arguments = Self { seeds: SEEDS, ..Self::default() };
        let mut words = std::env::args().skip(1);
        let number = |words: &mut dyn Iterator<Item = String>| {
            words.next().and_then(|word| word.parse().ok()).expect("a number")
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seeds" => arguments.seeds = number(&mut words),
                "--from" => arguments.from = number(&mut words),
                "--seed" => arguments.seed = Some(number(&mut words)),
                "--tolerate" => arguments.options.tolerated = words.next().map(|text| &*text.leak()),
                "--mutations" => {
                    arguments.mutations = Some(String::new());
                    arguments.seeds = MUTATION_SEEDS;
                }
                "--of" => arguments.mutations = words.next(),
                "--draw" => {
                    arguments.drawn = usize::try_from(number(&mut words)).ok();
                    arguments.mutations = Some(String::new());
                    arguments.seeds = MUTATION_SEEDS;
                }
                "--trace" => arguments.options.keeps_trace = true,
                "--bias" => arguments.options.bias = Some(write(&words.next().unwrap_or_default())),
                "--without" => arguments.options.without = Some(condition(&words.next().unwrap_or_default())),
                other => panic!("what is {other}?"),
            }
        }
        arguments
    }
}

fn write(name: &str) -> Write {
    let named = Write::ALL.iter().find(|write| write.name() == name);
    *named.unwrap_or_else(|| panic!("no such write: {name}"))
}

fn condition(text: &str) -> Condition {
    let all = conditions::all();
    let named = all.iter().find(|condition| condition.to_string() == text);
    *named.unwrap_or_else(|| panic!("no such condition: {text}"))
}

fn main() {
    let arguments = Arguments::read();
    if let Some(seed) = arguments.seed {
        let outcome = run(seed, &arguments.options);
        println!("{}", outcome.trace.join("\n"));
        match &outcome.failure {
            Some(failure) => println!("{}", report(seed, &arguments.options, failure)),
            None => println!("seed {seed}: nothing failed"),
        }
        return;
    }
    if let Some(write) = &arguments.mutations {
        mutate(write, &arguments);
        return;
    }
    let failed = run_all(&arguments);
    assert!(failed == 0, "{failed} seeds failed");
}

/// The row of `condition` in `table`.
fn row_in(table: &str, Condition { write, clause }: Condition) -> Option<&str> {
    let begins = format!("| {write} | `{clause}` | ");
    table.lines().find(|row| row.starts_with(&begins))
}

/// The seed in `table` that noticed the loss of `condition`, if one did.
fn seed_in(table: &str, condition: Condition) -> Option<u64> {
    row_in(table, condition)?.trim_end_matches([' ', '|']).rsplit(' ').next()?.parse().ok()
}

/// Removes the conditions of the writes that begin with `write`, one at a time, and writes down what noticed.
fn mutate(write: &str, arguments: &Arguments) {
    let table = std::fs::read_to_string(TABLE).expect("the table");
    let mut chosen: Vec<Condition> =
        conditions::all().into_iter().filter(|condition| condition.to_string().starts_with(write)).collect();
    if let Some(count) = arguments.drawn {
        chosen.retain(|condition| seed_in(&table, *condition).is_some_and(|seed| seed <= DRAWN_SEED_MAX));
        fastrand::Rng::with_seed(arguments.from).shuffle(&mut chosen);
        chosen.truncate(count);
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(condition) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = search(*condition, arguments.seeds, &arguments.options);
                    println!("{} ({} seeds sent it)", result.row(), result.sent);
                    found.lock().expect("no panic").push(result);
                }
            });
        }
    });
    let found = found.into_inner().expect("no panic");
    if arguments.drawn.is_none() {
        let rows = conditions::all().into_iter().filter_map(|condition| {
            let found = found.iter().find(|found| found.condition == condition);
            found.map(Found::row).or_else(|| row_in(&table, condition).map(ToOwned::to_owned))
        });
        let table = format!("{TABLE_HEAD}{}\n", rows.collect::<Vec<_>>().join("\n"));
        std::fs::write(TABLE, table).expect("the table is written");
    }
    let unexpected: Vec<&Found> = found.iter().filter(|found| found.is_unexpected()).collect();
    for found in &unexpected {
        println!("contradicts its verdict: {}", found.row());
    }
    assert!(!found.is_empty(), "no condition was taken away");
    assert!(unexpected.is_empty(), "{} conditions contradict their verdicts", unexpected.len());
}

/// Options of `seed` by default: every other seed favors what leads to one of the writes, in turn.
fn options_of(seed: u64, options: &Options) -> Options {
    let turn = usize::try_from(seed / 2).unwrap_or_default() % Write::ALL.len();
    let bias = Write::ALL.get(turn).copied().filter(|_| !seed.is_multiple_of(2));
    Options { bias: options.bias.or(options.without.map(|condition| condition.write)).or(bias), ..*options }
}

/// Runs all seeds on all cores; how many failed.
fn run_all(arguments: &Arguments) -> u64 {
    let began = Instant::now();
    let (next, done, failed) = (AtomicU64::new(arguments.from), AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let total = Mutex::new((BTreeSet::new(), BTreeMap::<(&'static str, String), u64>::new(), 0_u64));
    let end = arguments.from + arguments.seeds;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let options = options_of(seed, &arguments.options);
                    let Outcome { failure, trace, seen, calls, outcomes, .. } = run(seed, &options);
                    if let Some(failure) = failure {
                        println!("\n{}\n{}", trace.join("\n"), report(seed, &options, &failure));
                        // A handful is enough.
                        is_over.store(failed.fetch_add(1, Ordering::Relaxed) >= 4, Ordering::Relaxed);
                    }
                    let mut total = total.lock().expect("no panic");
                    total.0.extend(seen);
                    total.2 += calls;
                    for (outcome, count) in outcomes {
                        *total.1.entry(outcome).or_default() += count;
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(PROGRESS) {
                        let rate = done as f64 / began.elapsed().as_secs_f64();
                        println!("{done} seeds, {rate:.0} seeds/s, {} calls", total.2);
                    }
                }
            });
        }
    });
    let (seen, outcomes, calls) = total.into_inner().expect("no panic");
    let (done, took) = (done.into_inner(), began.elapsed().as_secs_f64());
    println!("{done} seeds in {took:.0} s, {:.1} seeds/s, {calls} calls of the database", done as f64 / took);
    for ((function, answer), count) in outcomes {
        println!("{function:>24} {count:>8} {answer}");
    }
    for condition in conditions::all().iter().filter(|condition| !seen.contains(condition)) {
        println!("never sent: {condition}");
    }
    println!("the last seed replays by: {}", replay(end - 1, &options_of(end - 1, &arguments.options)));
    failed.into_inner()
}

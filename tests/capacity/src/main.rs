//! `cargo run --profile bench --bin capacity`: finds by the thousand a second into one namespace, simulated.
//!
//! `-- --rate R --capacity C --shards N --shape spike|quiet --asks KIND --seconds N --stay S --seed S` runs
//! one scenario, `-- --burst N` so many finds at one instant, `-- --quick` what CI has time for,
//! `-- --worlds` games of every kind, `-- --storm` honest players under a hostile crowd, `-- --on-demand`
//! players where no game server runs, `-- --raid` scripts there; without any, all others, most a minute
//! each. What is simulated and what is not: the library beside it. Prints one row for each scenario, a table
//! minute by minute of each long one, and the bars that are missed, which make it fail.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program of the tests panics on failure and prints its figures"
)]

use std::{
    env, panic,
    process::{self, ExitCode},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use capacity::{
    on_demand::{BIRTH_HEAD, moments, run_moment},
    outcome::{HEAD, Outcome},
    raid::{RAID_HEAD, Raid, run_raid},
    run,
    scenario::{Asks, STAY_SECS, Scenario, Shape},
    storm::{STORM_HEAD, Storm, run_storm, storms},
};

const RATES: [u32; 3] = [1_000, 5_000, 20_000];
const CAPACITIES: [u32; 2] = [10, 100];
const SHAPES: [Shape; 2] = [Shape::Spike, Shape::Quiet];
const BURST: Scenario = Scenario { rate: 0, shape: Shape::Burst(100), seconds: 0, ..Scenario::QUICK };
/// More than the head of a pool takes in a second.
const CROWD: Scenario = Scenario { shape: Shape::Burst(700), ..BURST };
/// Parties at one instant, and who comes in the two seconds after them.
const PARTIES_AT_ONCE: Scenario = Scenario { asks: Asks::Parties(4), ..BURST };
const PARTIES_AND_LATER: Scenario = Scenario { rate: 50, seconds: 2, ..PARTIES_AT_ONCE };
const PARTIES: Scenario = Scenario { asks: Asks::Parties(4), ..QUICK };
const QUICK: Scenario = Scenario::QUICK;
/// As many players leave as come, which is how a launched game lives: some from 8.5 s on, all after 27.5 s.
const STEADY: Scenario = Scenario { seconds: 40, stay_secs_max: 15, ..QUICK };
const STEADY_RATES: [u32; 3] = [250, 1_000, 5_000];
const QUICK_STEADY: Scenario = Scenario { seconds: 17, stay_secs_max: 8, shards: 4, ..QUICK };
/// More finds a second than a pool's head takes, into large lobbies.
const LAUNCH: Scenario = Scenario { rate: 2_000, capacity: 100, seconds: 4, stay_secs_max: 60, ..QUICK };
/// A launched game on a usual day, long enough to show that it gets no dearer.
const LIVING: Scenario = Scenario { rate: 120, capacity: 8, seconds: 600, stay_secs_max: 60, ..QUICK };

/// The shards that a mode with so many finds a second is advised to have (`infra/docs/limits.md`).
fn shards_at(rate: u32) -> u32 {
    rate.div_ceil(250).clamp(1, 32)
}

const OTHER: [Asks; 10] = [
    Asks::Modes(2),
    Asks::Modes(3),
    Asks::Regions(2),
    Asks::Regions(10),
    Asks::Latencies(4),
    Asks::Tags(5),
    Asks::Codes,
    Asks::Sizes,
    Asks::Mixed,
    Asks::Parties(4),
];

fn all(seconds: u32, stay_secs_max: u32, seed: u64) -> Vec<Scenario> {
    let mut scenarios =
        [100, 700, 1_000].map(|finds| Scenario { seed, shape: Shape::Burst(finds), ..BURST }).to_vec();
    for rate in RATES {
        for capacity in CAPACITIES {
            scenarios.extend(SHAPES.map(|shape| Scenario {
                rate,
                capacity,
                shards: shards_at(rate),
                shape,
                seconds,
                stay_secs_max,
                seed,
                ..QUICK
            }));
        }
    }
    scenarios
}

/// Games of every kind: big lobbies, several modes or regions in one find, tags, with clients that find
/// without pause and with as many players leaving as come.
fn worlds(seed: u64) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for clients in [4, 8, 32] {
        let without_pause = Scenario { shape: Shape::Clients(clients), seed, rate: 0, seconds: 0, ..QUICK };
        scenarios.extend([10, 64, 100, 256].map(|capacity| Scenario { capacity, ..without_pause }));
        scenarios.extend(OTHER.map(|asks| Scenario { asks, ..without_pause }));
        // What clients pay who have learned the world.
        let longer = Scenario { times: 10, ..without_pause };
        scenarios.extend([10, 64, 100, 256].map(|capacity| Scenario { capacity, ..longer }));
        scenarios.extend(OTHER.map(|asks| Scenario { asks, ..longer }));
    }
    let steady = Scenario { rate: 120, seconds: 30, stay_secs_max: 15, seed, ..QUICK };
    scenarios.extend([2, 64, 100, 256].map(|capacity| Scenario { capacity, ..steady }));
    scenarios.extend(OTHER.map(|asks| Scenario { asks, ..steady }));
    let longer = Scenario { seconds: 60, shards: shards_at(PARTIES.rate), ..PARTIES };
    let parties = [PARTIES_AT_ONCE, PARTIES_AND_LATER, PARTIES, longer];
    scenarios.extend(parties.map(|parties| Scenario { seed, ..parties }));
    scenarios
}

/// Of [`OTHER`], the kind called `name`, as `parties4`.
fn named(name: &str) -> Asks {
    let words = |asks: &Asks| format!("{asks:?}").to_lowercase().replace(['(', ')'], "");
    OTHER.into_iter().find(|asks| words(asks) == name).unwrap_or_else(|| panic!("{name} is no kind of find"))
}

/// The requested scenarios, and whether CI has time for only these.
fn requested() -> (Vec<Scenario>, bool) {
    let (mut rate, mut capacity, mut shape) = (None, None, None);
    let (mut stay_secs_max, mut shards) = (STAY_SECS, None);
    let (mut seconds, mut seed, mut burst, mut is_quick, mut is_worlds) = (60, 1, 0, false, false);
    let (mut clients, mut times) = (0, 1);
    let mut asks = Asks::Plain;
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--rate" => rate = Some(value().parse().expect("a rate")),
            "--capacity" => capacity = Some(value().parse().expect("a capacity")),
            "--shards" => shards = Some(value().parse().expect("shards")),
            "--seconds" => seconds = value().parse().expect("seconds"),
            "--stay" => stay_secs_max = value().parse().expect("seconds"),
            "--seed" => seed = value().parse().expect("a seed"),
            "--shape" => {
                shape = Some(match value().as_str() {
                    "spike" => Shape::Spike,
                    "quiet" => Shape::Quiet,
                    other => panic!("{other} is no shape"),
                });
            }
            "--clients" => clients = value().parse().expect("clients"),
            "--times" => times = value().parse().expect("a number"),
            "--burst" => burst = value().parse().expect("finds"),
            "--asks" => asks = named(&value()),
            "--worlds" => is_worlds = true,
            "--quick" => is_quick = true,
            other => panic!("{other} is no option"),
        }
    }
    if is_quick {
        let mut scenarios = [BURST, CROWD, QUICK, QUICK_STEADY, LAUNCH].to_vec();
        let clients = Scenario { shape: Shape::Clients(8), rate: 0, seconds: 0, ..QUICK };
        scenarios.extend([64, 100].map(|capacity| Scenario { capacity, ..clients }));
        scenarios.extend(OTHER.map(|asks| Scenario { asks, ..clients }));
        scenarios.extend([PARTIES_AT_ONCE, PARTIES_AND_LATER, PARTIES]);
        return (scenarios.into_iter().map(|scenario| Scenario { seed, ..scenario }).collect(), true);
    }
    if is_worlds {
        return (worlds(seed), false);
    }
    if burst > 0 {
        return (vec![Scenario { seed, shape: Shape::Burst(burst), asks, ..BURST }], false);
    }
    if clients > 0 {
        let (shape, capacity) = (Shape::Clients(clients), capacity.unwrap_or(10));
        let scenario = Scenario { shape, capacity, asks, times, seed, rate: 0, seconds: 0, ..QUICK };
        return (vec![scenario], false);
    }
    let is_one = rate.is_some() || capacity.is_some() || shape.is_some();
    let mut scenarios = all(seconds, stay_secs_max, seed);
    if !is_one {
        scenarios.extend(STEADY_RATES.map(|rate| Scenario { rate, shards: shards_at(rate), seed, ..STEADY }));
        scenarios.extend([LIVING, LAUNCH].map(|scenario| Scenario { seed, ..scenario }));
    }
    scenarios.retain(|scenario| {
        rate.is_none_or(|rate| rate == scenario.rate)
            && capacity.is_none_or(|capacity| capacity == scenario.capacity)
            && shape.is_none_or(|shape| shape == scenario.shape)
            && !(is_one && matches!(scenario.shape, Shape::Burst(_)))
    });
    if let (true, Some(rate)) = (scenarios.is_empty(), rate) {
        scenarios.push(Scenario {
            rate,
            capacity: capacity.unwrap_or(10),
            shards: shards_at(rate),
            shape: shape.unwrap_or(Shape::Spike),
            seconds,
            stay_secs_max,
            seed,
            ..QUICK
        });
    }
    for scenario in &mut scenarios {
        scenario.shards = shards.unwrap_or(scenario.shards);
        scenario.asks = asks;
    }
    (scenarios, false)
}

/// Has a panic end the process with status 101, also in a task whose result nobody reads.
fn end_at_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        print(panic);
        process::exit(101);
    }));
}

/// Runs all of `jobs`, the last first, as many at a time as the machine has processors; their results in
/// order.
fn run_all<J: Copy + Sync, R: Send>(jobs: &[J], run: impl Fn(J) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::<(usize, R)>::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(number) = jobs.len().checked_sub(next.fetch_add(1, Ordering::Relaxed) + 1) {
                    let result = run(*jobs.get(number).expect("a job"));
                    done.lock().expect("no panic").push((number, result));
                }
            });
        }
    });
    let mut results = done.into_inner().expect("no panic");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The storms that `arguments` ask for: `--storm`, then `--seconds N`, `--stay N`, `--seats N`,
/// `--reservation N`, `--slowness N`, `--crowd KIND`, `--addresses N` and `--seed N`, each if wanted.
fn requested_storms(mut arguments: impl Iterator<Item = String>) -> Vec<Storm> {
    let mut storms = storms();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().expect("a value");
        let number = || value.parse::<u32>().expect("a number");
        match argument.as_str() {
            "--seconds" => storms.iter_mut().for_each(|storm| storm.seconds = number().into()),
            "--stay" => storms.iter_mut().for_each(|storm| storm.stay_secs = number().into()),
            "--seats" => storms.iter_mut().for_each(|storm| storm.per_client = number()),
            "--reservation" => storms.iter_mut().for_each(|storm| storm.reservation_secs = number()),
            "--slowness" => storms.iter_mut().for_each(|storm| storm.slowness = number().into()),
            "--seed" => storms.iter_mut().for_each(|storm| storm.seed = number().into()),
            "--addresses" => storms.retain(|storm| storm.addresses == number()),
            "--crowd" => storms.retain(|storm| format!("{:?}", storm.crowd).eq_ignore_ascii_case(&value)),
            other => panic!("{other} is no option"),
        }
    }
    storms
}

/// Plays the moments of servers on demand by `seed`, or the `nth` of them, counted from 0, and fails where
/// something that must always hold does not.
fn play_moments(seed: u64, nth: Option<u64>) -> ExitCode {
    let mut moments = moments(seed);
    if let Some(nth) = nth.and_then(|nth| usize::try_from(nth).ok()) {
        moments = moments.into_iter().skip(nth).take(1).collect();
    }
    let births = run_all(&moments, |moment| {
        let birth = run_moment(moment);
        eprintln!("{}", birth.row(&moment));
        birth
    });
    println!("{BIRTH_HEAD}");
    let mut broken = Vec::new();
    for (moment, birth) in moments.iter().zip(&births) {
        println!("{}", birth.row(moment));
        broken.extend(birth.broken(moment).into_iter().map(|broken| format!("{moment}: {broken}")));
    }
    for line in &broken {
        println!("\n{line}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    end_at_panic();
    if env::args().nth(1).as_deref() == Some("--storm") {
        let storms = requested_storms(env::args().skip(2));
        let outcomes = run_all(&storms, |storm| {
            let outcome = run_storm(storm);
            eprintln!("{}", outcome.row(&storm));
            outcome
        });
        println!("{STORM_HEAD}");
        for (storm, outcome) in storms.iter().zip(&outcomes) {
            println!("{}", outcome.row(storm));
        }
        return ExitCode::SUCCESS;
    }
    if env::args().nth(1).as_deref() == Some("--raid") {
        let raids = [0, 1, 16, 200].map(|addresses| Raid { addresses, seed: 1 });
        let outcomes = run_all(&raids, run_raid);
        println!("{RAID_HEAD}");
        raids.iter().zip(&outcomes).for_each(|(raid, outcome)| println!("{}", outcome.row(*raid)));
        return ExitCode::SUCCESS;
    }
    if env::args().nth(1).as_deref() == Some("--on-demand") {
        let number = |nth| env::args().nth(nth).map(|number| number.parse().expect("a number"));
        return play_moments(number(2).unwrap_or(1), number(3));
    }
    let (scenarios, is_quick) = requested();
    println!("{HEAD}");
    let outcomes = run_all(&scenarios, |scenario| {
        let began = Instant::now();
        let outcome = run(scenario, &mut |line| eprintln!("[{:.0?}] {line}", began.elapsed()));
        eprintln!("[{:.1?}] {}", began.elapsed(), outcome.row());
        outcome
    });
    for outcome in &outcomes {
        println!("{}", outcome.row());
    }
    for table in outcomes.iter().filter_map(Outcome::by_minute) {
        println!("\n{table}");
    }
    let missed: Vec<String> = outcomes.iter().flat_map(|outcome| outcome.missed(is_quick)).collect();
    for line in &missed {
        println!("\n{line}");
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

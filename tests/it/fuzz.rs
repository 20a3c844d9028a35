//! Generated bodies, tokens, events and values, each with the expected result of its parser.
//!
//! `PROPTEST_CASES` sets how many cases a target tries. A failure prints the smallest failing case and the
//! command that replays it; every run begins with another seed unless `PROPTEST_RNG_SEED` is set.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{any, env};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner},
};
use shared::base::ambient::Ambient;

mod bodies;
mod events;
mod handed_on;
mod json;
mod service;
mod tokens;
mod values;

/// Cases of a target that calls the service, unless `PROPTEST_CASES` says otherwise: `.ci/proof fuzz` tries
/// 2,000.
const CASES: u32 = 128;
/// Cases of a target whose requests mostly change nothing, for each case of one whose requests do.
const IDLE_CASES: u32 = 4;
/// Cases of a target of plain functions, which take microseconds, for each case of one that calls the
/// service.
const PLAIN_CASES: u32 = 8;
/// Cases tried to make a failing one smaller.
const SMALLER_CASES_MAX: u32 = 2_048;

/// Calls the service for each of some cases.
fn check<S: Strategy, P: Fn(S::Value) -> TestCaseResult>(cases: S, property: P) {
    run(1, &cases, property);
}

/// Calls the service for each of more cases, since most of them change nothing.
fn check_idle<S: Strategy, P: Fn(S::Value) -> TestCaseResult>(cases: S, property: P) {
    run(IDLE_CASES, &cases, property);
}

/// Tries plain functions with many cases.
fn check_plain<S: Strategy, P: Fn(S::Value) -> TestCaseResult>(cases: S, property: P) {
    run(PLAIN_CASES, &cases, property);
}

fn run<S: Strategy, P: Fn(S::Value) -> TestCaseResult>(factor: u32, strategy: &S, property: P) {
    // Read from the environment, where it names any of them.
    let defaults = Config::default();
    let cases = if env::var_os("PROPTEST_CASES").is_some() { defaults.cases } else { CASES };
    let seed = match defaults.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => u64::from_le_bytes(Ambient::system().bytes()),
    };
    let config = Config {
        cases: cases.saturating_mul(factor),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: SMALLER_CASES_MAX,
        ..defaults
    };
    let replay = format!(
        "PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test --test it -- --exact {}",
        name_of::<P>()
    );
    match TestRunner::new(config).run(strategy, property) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nsmallest case: {case:#?}\nreplay: {replay}"),
        Err(TestError::Abort(why)) => panic!("{why}\nreplay: {replay}"),
    }
}

/// The test whose property this is: `crate::module::test::{{closure}}` without its ends.
fn name_of<P>() -> &'static str {
    let name = any::type_name::<P>();
    let (_, name) = name.split_once("::").unwrap_or(("", name));
    name.split_once("::{{closure}}").map_or(name, |(name, _)| name)
}

#[test]
#[should_panic(expected = "-- --exact fuzz::a_failure_reports_how_to_replay_it")]
fn a_failure_reports_how_to_replay_it() {
    check(0..100_u8, |number| {
        proptest::prop_assert!(number < 10);
        Ok(())
    });
}

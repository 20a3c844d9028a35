//! x
use std::io::Write as _;
fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut evaluated = std::collections::BTreeSet::new();
    let mut decisive = std::collections::BTreeSet::new();
    for configuration in muster_tests::model::configurations::all() {
        if !configuration.name.contains(&only) { continue; }
        print!("{} ", configuration.name);
        std::io::stdout().flush().unwrap();
        let outcome = muster_tests::model::check(configuration, None);
        println!("{} {} {:.1}", outcome.states, outcome.depth, outcome.seconds);
        if let Some(violation) = outcome.violation { println!("{violation}"); }
        evaluated.extend(outcome.evaluated);
        decisive.extend(outcome.decisive);
    }
    for c in muster_tests::conditions::all() {
        if !evaluated.contains(&c) { println!("never evaluated: {c}"); }
        else if !decisive.contains(&c) { println!("never decisive: {c}"); }
    }
}

//! `cargo run --bin permissions -- FILE`: whether each function of the template is granted what the tests
//! needed and nothing else. They write it to FILE when `MUSTER_PERMISSIONS_RECORD` names that.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program of the tests panics on failure and prints its figures"
)]

use std::{collections::BTreeSet, fs, process::ExitCode};

use muster_local::{stack::TEMPLATE, template::Template};

/// What no test through the local stack needs, and the template grants all the same: function, action and
/// table.
///
/// A lobby of a server that deregistered, left without players when the end of another transaction kept it
/// from ending at once, ends at a heartbeat that was under way meanwhile, and with it the server's record and
/// allotment.
const RACE: (&str, &str, &str) = ("heartbeat-server", "UpdateItem", "LedgerTable");

fn main() -> ExitCode {
    let path = std::env::args().nth(1).expect("a file of what was needed");
    let needed = fs::read_to_string(path).expect("what was needed");
    let needed: BTreeSet<(String, String, String)> = needed
        .lines()
        .map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut word = || words.next().expect("three words");
            (word(), word(), word())
        })
        .collect();
    let template = Template::parse(TEMPLATE).expect("a template");
    let (mut granted, mut unneeded) = (0, 0);
    for (code_uri, function) in &template.functions {
        let permissions = &function.permissions;
        let function = code_uri.strip_prefix("functions/").expect("a function's folder");
        for (action, resource) in permissions.granted() {
            granted += 1;
            let grant = (function.to_owned(), action.to_owned(), resource.to_owned());
            if !needed.contains(&grant) && RACE != (function, action, resource) {
                unneeded += 1;
                println!("{function} may {action} on {resource}, which nothing needed");
            }
        }
    }
    println!(
        "{} permissions were needed, {granted} are granted, {unneeded} of them for nothing",
        needed.len()
    );
    if unneeded == 0 && !needed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

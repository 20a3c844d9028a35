//! The committed table: configurations with their numbers of states, and what each condition keeps from going
//! wrong.

use super::{
    Configuration, Outcomes,
    mutations::{Found, left_out},
};
use crate::conditions;

/// What stands above the configurations.
const HEAD: &str = "# The model of matchmaking

`cargo run --bin model` explores every state of these configurations: each order of the store's
writes, with crashes, late repetitions of a write and time between any two steps. I5 and I12 are not modelled: the
simulation has them. I11 is not: a namespace is a part of every key.

`cargo test -p model` compares the model with the store by effect. In the same random tables, the model makes
one of its 42 writes, and two databases make the call that the store's own method sends. They agree on the
outcome, the part that refuses, and every attribute. The test also changes each clause, assignment and value of
the calls, and removes each condition from the model. It notices every such difference but those that the model
leaves out (`LEFT_OUT`, `UNMAPPED` and `UNSEEN` in `src/mutations.rs`).

| configuration | states | depth |
|---|---|---|
";

const FINDINGS_HEAD: &str = "
## Open findings

What the product does not keep in these configurations; `-- --trace NAME` prints the way there.

| configuration | fails | what is seen |
|---|---|---|
";

const LEFT_OUT_HEAD: &str = "
## Conditions left out

| write | condition | because |
|---|---|---|
";

const MUTATIONS_HEAD: &str = "
## What each condition keeps from going wrong

`-- --mutations` takes each condition away and explores the configurations in which it is the only one that refuses some
write, the smallest first, until an invariant fails.

| write | condition | fails without it | in |
|---|---|---|---|
";

/// Everything but the mutations: configurations, findings, what is left out.
#[must_use]
pub fn without_mutations(all: &[(Configuration, Outcomes)], findings: &[(Outcomes, &str)]) -> String {
    let mut text = HEAD.to_owned();
    for (configuration, outcomes) in all {
        text += &format!("| {} | {} | {} |\n", configuration.name, outcomes.states, outcomes.depth);
    }
    let total: usize = all.iter().map(|(_, outcomes)| outcomes.states).sum();
    text += &format!("| all | {total} | |\n");
    text += FINDINGS_HEAD;
    for (outcomes, what) in findings {
        let fails = outcomes.violation.as_ref().map_or("nothing", |violation| violation.name());
        text += &format!("| {} | {fails} | {what} |\n", outcomes.name);
    }
    text += LEFT_OUT_HEAD;
    for condition in conditions::all() {
        if let Some(why) = left_out(condition) {
            text += &format!("| {} | `{}` | {why} |\n", condition.write, condition.clause);
        }
    }
    text
}

/// The table of mutations.
#[must_use]
pub fn mutations(found: &[Found]) -> String {
    let rows: Vec<String> = found.iter().map(Found::row).collect();
    format!("{MUTATIONS_HEAD}{}\n", rows.join("\n"))
}

/// Whether `table` has a row of mutations for exactly the conditions that are not left out.
#[must_use]
pub fn lists_every_condition(table: &str) -> bool {
    let rows = table.split(MUTATIONS_HEAD).nth(1).unwrap_or_default();
    let listed: Vec<String> =
        rows.lines().map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect();
    let known: Vec<String> = conditions::all()
        .into_iter()
        .filter(|condition| left_out(*condition).is_none())
        .map(|condition| format!("| {} | `{}`", condition.write, condition.clause))
        .collect();
    listed == known
}

//! The model of matchmaking: that it lacks no condition of the store, and a few of its smallest
//! configurations; the benchmark explores them all.

use std::collections::BTreeSet;

use model::{
    Configuration, check,
    conditions::{self, Condition, Write},
    configurations::{OPEN_FINDINGS, all},
    mutations::{VERDICTS, left_out},
    report::lists_every_condition,
    walk,
};

/// Walks through each configuration, and their steps.
const WALKS: u32 = 150;
const STEPS: u32 = 60;

fn configuration(name: &str) -> Option<Configuration> {
    all().into_iter().find(|configuration| configuration.name == name)
}

#[test]
fn every_condition_of_the_store_is_evaluated_or_left_out_for_a_reason() {
    let evaluated: BTreeSet<Condition> =
        all().into_iter().flat_map(|configuration| walk(configuration, WALKS, STEPS)).collect();
    for condition in conditions::all() {
        let is_evaluated = evaluated.contains(&condition);
        assert_ne!(is_evaluated, left_out(condition).is_some(), "{condition}: evaluated: {is_evaluated}");
    }
    for (write, clause, _) in VERDICTS {
        let condition = Condition { write: *write, clause };
        assert!(conditions::all().contains(&condition), "a verdict on what is no condition: {condition}");
    }
}

#[test]
fn the_committed_table_has_every_condition() {
    assert!(
        lists_every_condition(include_str!("../model/README.md")),
        "run `cargo run --bin model -- --mutations`"
    );
}

#[test]
fn every_property_holds_in_every_state_of_small_configurations() {
    for name in ["a creation sent twice", "a lowered cap", "another version", "a party assumes a capacity"] {
        let outcomes = check(configuration(name).unwrap(), None);
        let violation = outcomes.violation.map(|violation| violation.to_string());
        assert_eq!(violation, None, "{name}");
        assert!(outcomes.states > 1_000, "{name}: {} states", outcomes.states);
    }
}

#[test]
fn what_a_condition_keeps_from_going_wrong_is_found_without_it() {
    let cases = [
        (Write::TakeFreeSeat, "#taken < #max_players", "a lowered cap", "I1"),
        (Write::TakePlace, "#used = :last", "a server allotted more than it can run", "I2"),
        (Write::PutLobby, "attribute_not_exists(#lobby_id)", "a creation sent twice", "I4"),
        (Write::TakeFreeSeat, "#pool = :pool", "another version", "I6"),
        (Write::TakeParty, "#max_players_party = :capacity", "a party assumes a capacity", "I1"),
        (
            Write::TakeParty,
            "attribute_not_exists(#connected.#member)",
            "a party sent twice, whose first seat is taken over",
            "I13",
        ),
    ];
    for (write, clause, name, invariant) in cases {
        let condition = Condition { write, clause };
        let violation = check(configuration(name).unwrap(), Some(condition)).violation;
        let found = violation.as_ref().map(|violation| violation.name());
        assert_eq!(found, Some(invariant), "{condition} in {name}: {violation:?}");
    }
}

#[test]
fn open_findings_are_still_found() {
    for (configuration, what) in OPEN_FINDINGS {
        assert!(
            check(*configuration, None).violation.is_some(),
            "found no more: {}: {what}",
            configuration.name
        );
    }
}

//! The client kit, where Node.js is installed: clients under faults, and controls that must fail.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::process::Output;

use harness::{
    left_out::needs,
    node::{is_ready, missing_command, run},
};

use crate::{
    artefacts::{binary, workspace},
    clients::{python, python_client, typescript_client},
};

/// What the kit says of so many seeds of an adapter, run by `command`.
async fn played(seeds: &str, command: &str, adapter: &str) -> (Output, String) {
    let program = binary("muster-local").to_str().unwrap();
    let adapter = format!("adapters/{adapter}");
    let options = ["--seeds", seeds, "--at-once", "4", "--muster-local", program];
    let arguments = [&["kit.mjs"], &options[..], &["--", command, &adapter]].concat();
    let output = run(&workspace().join("infra/clients/kit"), "node", &arguments).await.expect("it was there");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, printed)
}

/// The number in the kit's table behind a name.
fn number(printed: &str, name: &str) -> u64 {
    let row = printed.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{printed}"));
    row.trim().replace(',', "").parse().unwrap_or_else(|_| panic!("{printed}"))
}

/// Plays eight seeds, one of them with a killed client, which must keep every seat.
async fn keeps_its_seats(command: &str, adapter: &str) {
    let (output, printed) = played("8", command, adapter).await;
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(number(&printed, "intents") > 60 && number(&printed, "answered") > 50, "{printed}");
    assert!(number(&printed, "requests") > number(&printed, "intents"), "{printed}");
    assert_eq!(number(&printed, "gave up"), 0, "{printed}");
}

#[tokio::test]
async fn the_typescript_client_keeps_its_seats_under_faults() {
    if typescript_client().await.is_some() {
        keeps_its_seats("node", "muster-client.mjs").await;
    }
}

#[tokio::test]
async fn the_python_client_keeps_its_seats_under_faults() {
    if needs("the client kit", missing_command().await) && python_client().await.is_some() {
        keeps_its_seats(&python(), "python_client.py").await;
    }
}

#[tokio::test]
async fn a_client_with_a_key_keeps_its_seats_under_faults() {
    if needs("the client kit", missing_command().await) {
        keeps_its_seats("node", "keyed-fetch.mjs").await;
    }
}

#[tokio::test]
async fn the_kit_fails_clients_without_a_key() {
    if !is_ready("controls of the client kit", &workspace().join("tests/clients/contract")).await {
        return;
    }
    for adapter in ["fetch-loop.mjs", "rivet-naive.mjs"] {
        // In each seed it is chance which of them it has.
        let (output, printed) = played("20", "node", adapter).await;
        let problems = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{adapter}: {printed}\n{problems}");
        assert!(number(&printed, "an intent holds two seats") > 0, "{adapter}: {printed}");
        assert!(number(&printed, "a seat is held by nobody") > 0, "{adapter}: {printed}");
        assert_eq!(number(&printed, "an answered intent has lost its seat"), 0, "{adapter}: {printed}");
    }
}

//! The runnable example: a lobby server and players of their own making, against a stack whose clock runs.

#![expect(clippy::panic, clippy::unwrap_used, reason = "this is test code: what cannot go on panics")]

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    time::Duration,
};

use harness::{TestStack, live_lobbies};
use muster_example::{ExampleError, Options, Report, run};
use shared::models::lobby::Stage;

use crate::artefacts::{Ended, Program};

mod ending;

const BINARY: &str = "muster-example";

/// Plays a session to its end, which must leave nothing behind.
async fn play(stack: &TestStack, options: &Options) -> Report {
    let mut lines = Vec::new();
    let report = run(options, pending(), |event| lines.push(event.to_string())).await;
    let report = report.unwrap_or_else(|error| panic!("{error}\n{}", lines.join("\n")));

    let mut welcomed = report.welcomed.clone();
    welcomed.sort_unstable();
    assert_eq!(welcomed, Vec::from_iter(1..=options.bots), "every bot is welcomed once");
    assert!(!lines.iter().any(|line| line.contains("eyJ")), "a token is shown: {lines:?}");
    for bot in &welcomed {
        let line = format!("  bot {bot} left");
        assert!(lines.iter().any(|shown| shown.ends_with(&line)), "{line}: {lines:?}");
    }

    let namespace_id = report.namespace_id.parse().unwrap();
    let lobbies = stack.all_lobbies(&namespace_id).await;
    assert!(lobbies.iter().all(|lobby| lobby.stage == Stage::Ended), "a lobby is left: {lobbies:?}");
    let made: BTreeSet<String> = lobbies.iter().map(|lobby| lobby.lobby_id.to_string()).collect();
    assert_eq!(made, report.opened, "the game server learned of every lobby");
    assert_eq!(made, report.ended);
    assert!(report.closed.is_subset(&report.filled) && report.reopened.is_subset(&report.closed));
    assert_eq!(live_lobbies(stack.store(), &namespace_id).await, 0);
    report
}

#[tokio::test]
async fn five_players_fill_close_leave_and_end_a_lobby() {
    let stack = TestStack::start_live().await;
    // Patient enough for any machine: the lobby fills, however long that takes.
    let options =
        Options { bots: 5, patience: Duration::from_secs(50), ..Options::at(stack.demo().base_url.clone()) };
    let report = play(&stack, &options).await;
    assert_eq!(report.opened.len(), 1, "{report:?}");
    for part in [&report.filled, &report.closed, &report.reopened] {
        assert_eq!(part, &report.opened, "{report:?}");
    }
    assert_eq!(report.joined, BTreeSet::from([5]), "the fifth takes the friend's seat");
}

#[tokio::test]
async fn a_crowd_plays_and_leaves_nothing_behind() {
    let stack = TestStack::start_live().await;
    let report = play(&stack, &Options { bots: 20, ..Options::at(stack.demo().base_url.clone()) }).await;
    assert!(!report.joined.is_empty(), "{report:?}");
}

#[tokio::test]
async fn without_a_stack_it_fails_and_says_how_to_start_one() {
    let url = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let error = run(&Options::at(url.clone()), pending(), |event| panic!("{event}")).await.unwrap_err();
    assert!(matches!(error, ExampleError::NoLocalStack(_)), "{error:?}");
    let Ended { status, stdout, stderr } = Program::run(BINARY, &["--url", &url], &BTreeMap::new()).await;
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""));
    assert_eq!(stderr, format!("muster-example: {error}\n"));
    assert!(stderr.contains(&url) && stderr.contains("start it with `muster-local`"), "{stderr}");
}

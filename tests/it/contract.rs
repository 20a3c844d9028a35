//! The operations through the npm client that existing games ship, where Node is installed.

use harness::{
    TestStack,
    node::{is_ready, run},
};

use crate::artefacts::workspace;

#[tokio::test]
async fn the_client_of_existing_games_works_unchanged() {
    let folder = workspace().join("tests/clients/contract");
    if !is_ready("the client of existing games", &folder).await {
        return;
    }
    let stack = TestStack::start().await;
    let output =
        run(&folder, "node", &["contract.mjs", &stack.demo().base_url]).await.expect("node was there");
    let (printed, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{problems}");
    let closing = printed.lines().last().unwrap_or_default();
    let passed = closing.strip_suffix(" passed, 0 failed").and_then(|count| count.parse::<usize>().ok());
    let listed = printed.lines().filter(|line| line.starts_with("ok    ")).count();
    assert!(listed > 0, "{printed}");
    assert_eq!(passed, Some(listed), "{printed}");
}

//! The interface by what others wrote, where Node is installed: the npm client that existing games ship, and
//! linters of OpenAPI documents.

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

#[tokio::test]
async fn linters_find_nothing_in_the_openapi_document() {
    let folder = workspace().join("tests/clients/openapi");
    if !is_ready("linters of the OpenAPI document", &folder).await {
        return;
    }
    let document = workspace().join("infra/openapi.json");
    let document = document.to_str().unwrap();
    let spectral = ["lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn", document];
    // No request to anybody, not even for the latest version.
    let redocly =
        ["REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "node_modules/.bin/redocly"];
    let redocly = [&redocly[..], &["lint", "--extends", "recommended-strict", document]].concat();
    for (linter, arguments) in [("node_modules/.bin/spectral", &spectral[..]), ("env", &redocly)] {
        let output = run(&folder, linter, arguments).await.expect("it is installed");
        let (printed, problems) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{printed}\n{problems}");
    }
}

//! The Postman collection, by the program that Postman's users run theirs with.

use std::collections::BTreeSet;

use harness::node::{is_ready, run};
use postman::{COLLECTION, written};

use super::*;
use crate::{agreement::document::Document, artefacts::workspace};

#[test]
fn the_collection_is_made_from_the_document() {
    let committed = fs::read_to_string(workspace().join(COLLECTION)).unwrap();
    let is_as_made = committed == written(&Document::read().root);
    assert!(is_as_made, "run `cargo run --bin postman`");
}

#[tokio::test]
async fn each_request_of_the_collection_is_answered_when_it_is_run_from_the_top() {
    let folder = workspace().join("tests/clients/collection");
    if !is_ready("the Postman collection", &folder).await {
        return;
    }
    let (local, reports) = (Local::start(&[]).await, TestFolder::new());
    let report = reports.path("report.json");
    let collection = workspace().join(COLLECTION);
    let base_url = format!("base_url={}", local.base_url);
    let arguments = [
        "node_modules/newman/bin/newman.js",
        "run",
        collection.to_str().unwrap(),
        "--env-var",
        &base_url,
        "--reporters",
        "json",
        "--reporter-json-export",
        &report,
    ];
    let output = run(&folder, "node", &arguments).await.expect("node was there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reported: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();

    let mut executed = BTreeSet::new();
    for execution in reported["run"]["executions"].as_array().unwrap() {
        let answer = &execution["response"];
        let body: Vec<u8> = serde_json::from_value(answer["stream"]["data"].clone()).unwrap_or_default();
        let name = execution["item"]["name"].as_str().unwrap();
        assert_eq!(answer["code"], 200, "{name}: {}", String::from_utf8_lossy(&body));
        assert_eq!(execution.get("assertions").and_then(Value::as_array).map_or(0, Vec::len), 0, "{name}");
        executed.insert(name.to_owned());
    }
    let document = Document::read();
    let documented: usize =
        document.operations().iter().map(|operation| operation.request_examples().len()).sum();
    assert_eq!(executed.len(), documented + 2, "{executed:#?}");
}

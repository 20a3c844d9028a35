//! What an owner relies on besides the service: rights and logs.

use std::{collections::BTreeSet, fs};

use harness::templates::template;
use muster_local::stack::TEMPLATE;
use regex_lite::Regex;
use serde_json::Value;

use crate::artefacts::workspace;

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

/// The texts of a value that is there: one or a list of them, whatever function they are of.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(function) => function.values().flat_map(texts).collect(),
        Value::Null => panic!("a value is missing"),
        Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Action and resource of each right of a policy of `infra/operator-policy.yaml`.
fn rights(policy: &str) -> BTreeSet<(String, String)> {
    let template = template(&read("infra/operator-policy.yaml"));
    let document = &template["Resources"][policy]["Properties"]["PolicyDocument"];
    let plain = document["Statement"].as_array().unwrap().iter().filter(|one| one.get("Fn::If").is_none());
    let of = |statement: &Value| {
        let resources = texts(&statement["Resource"]);
        let actions = texts(&statement["Action"]).into_iter();
        let rights = actions.flat_map(|action| resources.iter().map(move |it| (action.clone(), it.clone())));
        rights.collect::<Vec<_>>()
    };
    plain.flat_map(of).collect()
}

#[test]
fn a_role_that_only_looks_writes_nothing_and_reads_no_secret() {
    let (all, looking) = (rights("OperatorPolicy"), rights("LookerPolicy"));
    let actions = |rights: &BTreeSet<(String, String)>| -> BTreeSet<String> {
        rights.iter().map(|(action, _)| action.clone()).collect()
    };
    let beyond: Vec<_> = actions(&looking).difference(&actions(&all)).cloned().collect();
    assert!(beyond.is_empty(), "an operator may not {beyond:?}");
    let looks = Regex::new(r"^[a-z]+:(Describe|List|Get|BatchGet|Query|Scan|StartQuery)").unwrap();
    for (action, resource) in &looking {
        assert!(looks.is_match(action) && !action.contains("Secret"), "{action} on {resource}");
    }
    let items = looking.iter().filter(|(action, _)| action == "dynamodb:GetItem");
    let items: BTreeSet<_> =
        items.map(|(_, resource)| resource.rsplit("${StackName}-").next().unwrap()).collect();
    let table = Regex::new(r"(?m)^  (\w+Table):$").unwrap();
    let tables = table.captures_iter(TEMPLATE).map(|found| format!("{}-*", &found[1]));
    let tables: Vec<_> = tables.filter(|table| table != "SecretsTable-*").collect();
    assert_eq!(items, tables.iter().map(String::as_str).collect());
}

#[test]
fn logs_outlive_their_stack_and_are_in_the_way_of_no_later_one() {
    let template = template(TEMPLATE);
    let resources = template["Resources"].as_object().unwrap().values();
    let groups: Vec<_> = resources.filter(|one| one["Type"] == "AWS::Logs::LogGroup").collect();
    assert_eq!(groups.len(), 2);
    for group in groups {
        assert_eq!(group["DeletionPolicy"], "RetainExceptOnCreate");
        assert_eq!(group["UpdateReplacePolicy"], "Retain");
        let name = &group["Properties"]["LogGroupName"];
        assert!(name.is_null() || texts(name)[0].ends_with("-${StackId}"), "{name}");
    }
}

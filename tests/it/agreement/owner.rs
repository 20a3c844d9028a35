//! What an owner relies on besides the service: rights and logs.

use std::{collections::BTreeSet, fs};

use muster_local::stack::TEMPLATE;
use regex_lite::Regex;
use saphyr::{LoadableYamlNode as _, Yaml};

use crate::artefacts::workspace;

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

fn get<'a, 'b>(yaml: &'a Yaml<'b>, path: &[&str]) -> &'a Yaml<'b> {
    let found = path.iter().try_fold(yaml, |yaml, name| yaml.as_mapping_get(name));
    found.unwrap_or_else(|| panic!("{path:?} is missing"))
}

/// The texts of a value that is one or a list of them, whatever function they are of.
fn texts(yaml: &Yaml<'_>) -> Vec<String> {
    match yaml {
        Yaml::Tagged(_, inner) => texts(inner),
        Yaml::Sequence(items) => items.iter().flat_map(texts).collect(),
        _ => yaml.as_str().map(str::to_owned).into_iter().collect(),
    }
}

/// Action and resource of each right of a policy of `infra/operator-policy.yaml`.
fn rights(policy: &str) -> BTreeSet<(String, String)> {
    let text = read("infra/operator-policy.yaml");
    let documents = Yaml::load_from_str(&text).unwrap();
    let path = ["Resources", policy, "Properties", "PolicyDocument", "Statement"];
    let statements = get(&documents[0], &path).as_sequence().unwrap();
    let plain = statements.iter().filter(|statement| statement.is_mapping());
    let of = |statement: &Yaml<'_>| {
        let resources = texts(get(statement, &["Resource"]));
        let actions = texts(get(statement, &["Action"])).into_iter();
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
    let documents = Yaml::load_from_str(TEMPLATE).unwrap();
    let resources = get(&documents[0], &["Resources"]).as_mapping().unwrap();
    let is_group = |one: &&Yaml<'_>| texts(get(one, &["Type"])) == ["AWS::Logs::LogGroup"];
    let groups: Vec<_> = resources.values().filter(is_group).collect();
    assert_eq!(groups.len(), 2);
    for group in groups {
        assert_eq!(texts(get(group, &["DeletionPolicy"])), ["RetainExceptOnCreate"]);
        assert_eq!(texts(get(group, &["UpdateReplacePolicy"])), ["Retain"]);
        let name = get(group, &["Properties"]).as_mapping_get("LogGroupName");
        assert!(name.is_none_or(|name| texts(name)[0].ends_with("-${StackId}")), "{name:?}");
    }
}

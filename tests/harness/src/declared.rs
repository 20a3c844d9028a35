//! The functions of the template, with the environment that each gets when it is deployed.

use std::collections::BTreeMap;

use muster_local::stack::TEMPLATE;
use serde_json::Value;

use crate::templates::template;

/// A function as the template declares it.
#[derive(Debug)]
pub struct Function {
    /// Its name in the template.
    pub logical_id: String,
    /// The folder of its code.
    pub code_uri: String,
    /// The binary that SAM builds for it: the only one of its package, named like the folder.
    pub binary: String,
    /// Whether the API calls it.
    pub has_route: bool,
    /// Its environment as deployed, but with the local stack's table names and a signing key of the test's.
    pub environment: BTreeMap<String, String>,
}

/// Every function of the template; `signing_key` stands in for the secret that CloudFormation makes.
pub fn functions(signing_key: &str) -> Vec<Function> {
    let template = template(TEMPLATE);
    let variables = |holder: &Value| -> BTreeMap<String, String> {
        let variables = holder["Environment"]["Variables"].as_object().into_iter().flatten();
        variables.map(|(name, value)| (name.clone(), resolve(value, &template, signing_key))).collect()
    };
    let for_all = variables(&template["Globals"]["Function"]);
    let resources = template["Resources"].as_object().expect("resources").iter();
    resources
        .filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function")
        .map(|(id, resource)| {
            let code_uri = resource["Properties"]["CodeUri"].as_str().expect("a folder");
            let mut environment = for_all.clone();
            environment.extend(variables(&resource["Properties"]));
            Function {
                logical_id: id.clone(),
                binary: code_uri.strip_prefix("functions/").expect("a function's folder").to_owned(),
                code_uri: code_uri.to_owned(),
                has_route: resource["Properties"]["Events"].is_object(),
                environment,
            }
        })
        .collect()
}

/// The value that CloudFormation would give: of a parameter its default, of a table its name, of the secret
/// the key. Of conditions none holds.
fn resolve(value: &Value, template: &Value, signing_key: &str) -> String {
    if let Some([_, _, otherwise]) = value["Fn::If"].as_array().map(Vec::as_slice) {
        return resolve(otherwise, template, signing_key);
    }
    match (value["Ref"].as_str(), value["Fn::Sub"].as_str()) {
        // The local stack names tables by their logical identifiers.
        (Some(name), _) if name.ends_with("Table") => name.to_owned(),
        (Some(name), _) if name.ends_with("Queue") => format!("https://sqs.example/{name}"),
        (Some(name), _) => text(&template["Parameters"][name]["Default"]),
        (_, Some(sub)) if sub.contains("resolve:secretsmanager:${SigningKeySecret}") => {
            signing_key.to_owned()
        }
        (_, Some(sub)) if sub.contains("${AWS::StackName}") => sub.replace("${AWS::StackName}", "a-stack"),
        (_, Some(sub)) if sub.starts_with("https://${HttpApi}") => "https://api.example".to_owned(),
        _ => text(value),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => panic!("the test does not know {other}"),
    }
}

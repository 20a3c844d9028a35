//! The functions of the template, with the environment that each gets when it is deployed.

use std::collections::BTreeMap;

use muster_local::stack::TEMPLATE;
use saphyr::{LoadableYamlNode as _, Yaml};

/// A function as the template declares it.
#[derive(Debug)]
pub struct Function {
    /// Its name in the template.
    pub logical_id: String,
    /// The folder of its code.
    pub code_uri: String,
    /// The binary that SAM builds for it: the only one of its package, named like the folder.
    pub binary: String,
    /// Its environment as deployed, but with the local stack's table names and a signing key of the test's.
    pub environment: BTreeMap<String, String>,
}

/// Every function of the template; `signing_key` stands in for the secret that CloudFormation makes.
pub fn functions(signing_key: &str) -> Vec<Function> {
    let documents = Yaml::load_from_str(TEMPLATE).expect("YAML");
    let template = &documents[0];
    let value = |yaml: &Yaml<'_>| resolve(yaml, template, signing_key);
    let variables = |holder: Option<&Yaml<'_>>| -> BTreeMap<String, String> {
        let variables =
            holder.and_then(|holder| find(holder, &["Environment", "Variables"])).and_then(Yaml::as_mapping);
        let named = |(name, yaml): (&Yaml<'_>, &Yaml<'_>)| (text(name), value(yaml));
        variables.into_iter().flatten().map(named).collect()
    };
    let for_all = variables(find(template, &["Globals", "Function"]));
    let resources = template.as_mapping_get("Resources").and_then(Yaml::as_mapping);
    let resources = resources.expect("resources").iter();
    resources
        .filter(|(_, resource)| at(resource, &["Type"]) == "AWS::Serverless::Function")
        .map(|(id, resource)| {
            let code_uri = at(resource, &["Properties", "CodeUri"]);
            let mut environment = for_all.clone();
            environment.extend(variables(find(resource, &["Properties"])));
            Function {
                logical_id: text(id),
                binary: code_uri.strip_prefix("functions/").expect("a function's folder").to_owned(),
                code_uri,
                environment,
            }
        })
        .collect()
}

fn find<'a, 'b>(yaml: &'a Yaml<'b>, path: &[&str]) -> Option<&'a Yaml<'b>> {
    path.iter().try_fold(yaml, |yaml, name| yaml.as_mapping_get(name))
}

fn at(yaml: &Yaml<'_>, path: &[&str]) -> String {
    text(find(yaml, path).unwrap_or_else(|| panic!("{path:?} is missing in {yaml:?}")))
}

fn text(yaml: &Yaml<'_>) -> String {
    let number = || yaml.as_integer().map(|number| number.to_string());
    let text = yaml.as_str().map(str::to_owned).or_else(number);
    text.unwrap_or_else(|| panic!("not a text: {yaml:?}"))
}

/// The value that CloudFormation would give: of a parameter its default, of a table its name, of the secret
/// the key.
fn resolve(yaml: &Yaml<'_>, template: &Yaml<'_>, signing_key: &str) -> String {
    let Yaml::Tagged(tag, inner) = yaml else {
        return text(yaml);
    };
    let inner = text(inner);
    match tag.suffix.as_ref() {
        // The local stack names tables by their logical identifiers.
        "Ref" if inner.ends_with("Table") => inner,
        "Ref" => at(template, &["Parameters", &inner, "Default"]),
        "Sub" if inner.contains("resolve:secretsmanager:${SigningKeySecret}") => signing_key.to_owned(),
        "Sub" if inner.contains("${AWS::StackName}") => inner.replace("${AWS::StackName}", "a-stack"),
        other => panic!("the test does not know !{other} {inner}"),
    }
}

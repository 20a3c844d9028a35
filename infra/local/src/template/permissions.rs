//! Permissions of a function of the template on tables.

use std::collections::BTreeSet;

use saphyr::Yaml;

use super::{
    error::{Problem, TemplateError},
    node::Node,
};

/// The actions of DynamoDB that a function's own statements allow, each on one table or index.
///
/// A resource is a table's logical identifier, an index `table/index/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    tables: BTreeSet<(String, String)>,
}

impl Permissions {
    /// Whether `action`, such as `GetItem`, is allowed on `resource`.
    #[must_use]
    pub fn allow(&self, action: &str, resource: &str) -> bool {
        self.tables.contains(&(action.to_owned(), resource.to_owned()))
    }

    /// Every allowed action with its table or index.
    pub fn granted(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.iter().map(|(action, resource)| (action.as_str(), resource.as_str()))
    }

    /// Reads the statements of a function. Named policies concern no tables here.
    pub(super) fn read(properties: &Node<'_>) -> Result<Self, TemplateError> {
        let mut permissions = Self::default();
        let Some(policies) = properties.find("Policies")? else {
            return Ok(Self::default());
        };
        for policy in policies.items()?.iter().filter(|policy| policy.yaml.is_mapping()) {
            let Some(statements) = policy.find("Statement")? else { continue };
            for statement in statements.items()? {
                // A conditional statement grants nothing here, so calls that need it are refused.
                if matches!(statement.yaml, Yaml::Tagged(tag, _) if tag.suffix == "If") {
                    continue;
                }
                let effect = statement.get("Effect")?;
                if effect.text()? != "Allow" {
                    return Err(effect.unsupported(effect.text()?));
                }
                let resources = one_or_more(&statement.get("Resource")?)?;
                for action in one_or_more(&statement.get("Action")?)? {
                    let action = action.text()?;
                    for resource in &resources {
                        if let Some(action) = action.strip_prefix("dynamodb:")
                            && !is_stream(resource)
                        {
                            permissions.tables.insert((action.to_owned(), table_or_index(resource)?));
                        }
                    }
                }
            }
        }
        Ok(permissions)
    }
}

fn one_or_more<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>, TemplateError> {
    if node.yaml.is_sequence() { node.items() } else { Ok(vec![node.property("0")]) }
}

/// Whether it is the stream of a table, which Lambda reads.
fn is_stream(node: &Node<'_>) -> bool {
    matches!(node.yaml, Yaml::Tagged(_, inner) if inner.as_str().is_some_and(|text| text.ends_with(".StreamArn")))
}

/// `!GetAtt LobbiesTable.Arn` or `!Sub ${LobbiesTable.Arn}/index/candidates`.
fn table_or_index(node: &Node<'_>) -> Result<String, TemplateError> {
    let unknown = || node.error(Problem::Not("the Arn of a table or of one of its indexes"));
    let Yaml::Tagged(tag, inner) = node.yaml else { return Err(unknown()) };
    let inner = inner.as_str().ok_or_else(unknown)?;
    match tag.suffix.as_ref() {
        "GetAtt" => inner.strip_suffix(".Arn").map(str::to_owned).ok_or_else(unknown),
        "Sub" => {
            let (table, index) =
                inner.strip_prefix("${").and_then(|rest| rest.split_once(".Arn}")).ok_or_else(unknown)?;
            Ok(format!("{table}{index}"))
        }
        _ => Err(unknown()),
    }
}

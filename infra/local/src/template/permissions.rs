//! What a function of the template may do with which table.

use std::collections::BTreeSet;

use saphyr::Yaml;

use super::{Node, Problem, TemplateError};

/// The DynamoDB actions that a function's own statements allow, each on one table or index.
///
/// A resource is a table's logical identifier, an index `table/index/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions(BTreeSet<(String, String)>);

impl Permissions {
    /// Whether `action`, such as `GetItem`, is allowed on `resource`.
    #[must_use]
    pub fn allow(&self, action: &str, resource: &str) -> bool {
        self.0.contains(&(action.to_owned(), resource.to_owned()))
    }

    /// Whether everything that these allow the `others` allow, too.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Reads the statements of a function; policies by name say nothing of tables here.
    pub(super) fn read(properties: &Node<'_>) -> Result<Self, TemplateError> {
        let mut permissions = BTreeSet::new();
        let Some(policies) = properties.find("Policies")? else {
            return Ok(Self::default());
        };
        for policy in policies.items()?.iter().filter(|policy| policy.yaml.is_mapping()) {
            let Some(statements) = policy.find("Statement")? else { continue };
            for statement in statements.items()? {
                let effect = statement.get("Effect")?;
                if effect.text()? != "Allow" {
                    return Err(effect.unsupported(effect.text()?));
                }
                let resources = one_or_more(&statement.get("Resource")?)?;
                for action in one_or_more(&statement.get("Action")?)? {
                    let Some(action) = action.text()?.strip_prefix("dynamodb:") else { continue };
                    for resource in &resources {
                        permissions.insert((action.to_owned(), table_or_index(resource)?));
                    }
                }
            }
        }
        Ok(Self(permissions))
    }
}

fn one_or_more<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>, TemplateError> {
    if node.yaml.is_sequence() { node.items() } else { Ok(vec![node.property("0")]) }
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

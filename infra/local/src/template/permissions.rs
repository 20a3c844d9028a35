//! What a function of the template may do with which table.

use std::collections::BTreeSet;

use saphyr::Yaml;

use super::{Node, Problem, TemplateError};

/// The actions of DynamoDB that a function's own statements allow, each on one table or index, and those of Systems Manager.
///
/// A resource is a table's logical identifier, an index `table/index/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    tables: BTreeSet<(String, String)>,
    /// The actions of Systems Manager, on the deployment's own secrets.
    parameters: BTreeSet<String>,
}

/// The parameters that versions' secrets are kept in, as the template names them.
const SECRET_PARAMETERS: &str = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/muster/${AWS::StackName}/versions/*";

impl Permissions {
    /// Whether `action`, such as `GetItem`, is allowed on `resource`.
    #[must_use]
    pub fn allow(&self, action: &str, resource: &str) -> bool {
        self.tables.contains(&(action.to_owned(), resource.to_owned()))
    }

    /// Every action on every table and index that is allowed.
    pub fn granted(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.iter().map(|(action, resource)| (action.as_str(), resource.as_str()))
    }

    /// What these allow of parameters, as permissions on a `table` that stands for them.
    #[must_use]
    pub fn of_parameters_on(&self, table: &str) -> Self {
        let same = [("PutParameter", "PutItem"), ("GetParameters", "GetItem")];
        let allowed = same.into_iter().filter(|(action, _)| self.parameters.contains(*action));
        let tables = allowed.map(|(_, action)| (action.to_owned(), table.to_owned())).collect();
        Self { tables, parameters: BTreeSet::new() }
    }

    /// Reads the statements of a function; policies by name say nothing of tables here.
    pub(super) fn read(properties: &Node<'_>) -> Result<Self, TemplateError> {
        let mut permissions = Self::default();
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
                    let action = action.text()?;
                    for resource in &resources {
                        if let Some(action) = action.strip_prefix("dynamodb:") {
                            permissions.tables.insert((action.to_owned(), table_or_index(resource)?));
                        } else if let Some(action) = action.strip_prefix("ssm:") {
                            check_secret_parameters(resource)?;
                            permissions.parameters.insert(action.to_owned());
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

fn check_secret_parameters(node: &Node<'_>) -> Result<(), TemplateError> {
    match node.yaml {
        Yaml::Tagged(tag, inner) if tag.suffix == "Sub" && inner.as_str() == Some(SECRET_PARAMETERS) => {
            Ok(())
        }
        _ => Err(node.error(Problem::Not("the Arn of the parameters of versions' secrets"))),
    }
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

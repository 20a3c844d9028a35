//! Why the template cannot be run locally.

use saphyr::ScanError;

use crate::route::RoutePathError;

/// Why the template cannot be run locally.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text is not YAML.
    #[error("the template is not YAML: {0}")]
    Syntax(#[from] ScanError),
    /// There is no mapping `Resources`.
    #[error("the template has no `Resources`")]
    NoResources,
    /// The local stack cannot use a property.
    #[error("resource {resource}: {property} {problem}")]
    Property {
        /// Logical id of the resource.
        resource: String,
        /// Path of the property inside the resource, with dots.
        property: String,
        /// The problem.
        problem: Problem,
    },
}

/// A problem with a property of the template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The property is absent.
    #[error("is missing")]
    Missing,
    /// The property is of another kind, or uses a CloudFormation function.
    #[error("is not {0} that is written out")]
    Not(&'static str),
    /// The local stack does not support the value.
    #[error("is `{0}`, which the local stack does not support")]
    Unsupported(String),
    /// The path cannot be a route.
    #[error("{0}")]
    Path(#[from] RoutePathError),
    /// Another route matches the same requests.
    #[error("is taken by {0} already")]
    Taken(String),
}

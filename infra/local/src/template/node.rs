//! A cursor over the YAML of one resource.

use saphyr::Yaml;

use super::error::{Problem, TemplateError};

/// A place in the template with its path, which errors contain.
pub(super) struct Node<'a> {
    pub(super) resource: &'a str,
    pub(super) property: String,
    pub(super) yaml: &'a Yaml<'a>,
}

impl<'a> Node<'a> {
    pub(super) fn get(&self, name: &str) -> Result<Node<'a>, TemplateError> {
        self.find(name)?.ok_or_else(|| self.property(name).error(Problem::Missing))
    }

    pub(super) fn find(&self, name: &str) -> Result<Option<Node<'a>>, TemplateError> {
        if !self.yaml.is_mapping() {
            return Err(self.error(Problem::Not("a mapping")));
        }
        let value = self.yaml.as_mapping_get(name).filter(|value| !value.is_null());
        Ok(value.map(|yaml| Node { yaml, ..self.property(name) }))
    }

    pub(super) fn entries(&self) -> Result<Vec<Node<'a>>, TemplateError> {
        let mapping = self.yaml.as_mapping().ok_or_else(|| self.error(Problem::Not("a mapping")))?;
        let node = |(name, yaml): (&Yaml<'_>, &'a Yaml<'a>)| Node {
            yaml,
            ..self.property(name.as_str().unwrap_or_default())
        };
        Ok(mapping.iter().map(node).collect())
    }

    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, TemplateError> {
        let sequence = self.yaml.as_sequence().ok_or_else(|| self.error(Problem::Not("a list")))?;
        let node =
            |(position, yaml): (usize, &'a Yaml<'a>)| Node { yaml, ..self.property(&position.to_string()) };
        Ok(sequence.iter().enumerate().map(node).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, TemplateError> {
        self.yaml.as_str().ok_or_else(|| self.error(Problem::Not("a text")))
    }

    pub(super) fn texts(&self) -> Result<Vec<String>, TemplateError> {
        self.items()?.iter().map(|item| item.text().map(str::to_owned)).collect()
    }

    pub(super) fn seconds(&self) -> Result<u32, TemplateError> {
        let seconds = self.yaml.as_integer().and_then(|seconds| u32::try_from(seconds).ok());
        seconds.ok_or_else(|| self.error(Problem::Not("a number of seconds")))
    }

    pub(super) fn flag(&self) -> Result<bool, TemplateError> {
        self.yaml.as_bool().ok_or_else(|| self.error(Problem::Not("true or false")))
    }

    /// A node with the path of a property below this one, and this one's value.
    pub(super) fn property(&self, name: &str) -> Node<'a> {
        let separator = if self.property.is_empty() { "" } else { "." };
        Node { property: format!("{}{separator}{name}", self.property), ..*self }
    }

    pub(super) fn error(&self, problem: Problem) -> TemplateError {
        TemplateError::Property {
            resource: self.resource.to_owned(),
            property: self.property.clone(),
            problem,
        }
    }

    pub(super) fn unsupported(&self, value: &str) -> TemplateError {
        self.error(Problem::Unsupported(value.to_owned()))
    }
}

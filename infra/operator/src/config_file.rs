//! Files with a version's configuration, and the places of their errors.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf};

use saphyr::{LoadableYamlNode as _, MarkedYaml};
use serde::de::IgnoredAny;
use shared::{
    base::{
        json::for_people,
        record::{Strict, UnknownField},
    },
    models::{
        version::VersionConfig,
        violations::{Violation, Violations},
    },
};

use crate::{CommandError, error::Problem};

/// The field that an exported game has and a version's configuration has not.
const GAME_FILE_FIELD: &str = "muster_game";

/// Where a configuration is read from.
#[derive(Clone, Debug)]
pub(crate) enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// A text at hand, as an editor has it.
    Text(String),
}

impl From<OsString> for ConfigSource {
    fn from(path: OsString) -> Self {
        Self::File(path.into())
    }
}

/// A version's configuration, and its file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub config: VersionConfig,
    path: PathBuf,
    text: String,
}

/// Reads a configuration.
///
/// # Errors
/// [`CommandError::UnreadableFile`]; [`CommandError::InvalidFile`], which names path, line and column.
pub(crate) fn read(source: &ConfigSource) -> Result<ConfigFile, CommandError> {
    let (path, text) = match source {
        ConfigSource::File(path) => {
            let unreadable = |error| CommandError::UnreadableFile { path: path.clone(), error };
            (path.clone(), fs::read_to_string(path).map_err(unreadable)?)
        }
        ConfigSource::Text(text) => (PathBuf::from("the text"), text.clone()),
    };
    let invalid = |at: String, line: Option<usize>, problem: String| CommandError::InvalidFile {
        path: path.clone(),
        at,
        line,
        problem,
    };
    let mut json = serde_json::Deserializer::from_str(&text);
    let config: Strict<VersionConfig> = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let mut problem = for_people(error.inner());
        if has_field(&text, GAME_FILE_FIELD) {
            problem.push_str("; this is an exported game, which `muster game import` and `--config` read");
        }
        invalid(error.path().to_string(), Some(error.inner().line()), problem)
    })?;
    json.end().map_err(|error| invalid(".".to_owned(), Some(error.line()), error.to_string()))?;
    let config = config.known().map_err(|UnknownField(field)| {
        let path: Vec<_> = field.split('.').map(ToOwned::to_owned).collect();
        let line = line(&text, &path);
        let at_line = line.map(|line| format!(" at line {line}")).unwrap_or_default();
        invalid(field, line, format!("no configuration has this field{at_line}"))
    })?;
    Ok(ConfigFile { config, path, text })
}

/// Whether the JSON `text` is an object with the field `name`.
pub(crate) fn has_field(text: &str, name: &str) -> bool {
    let fields: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_str(text);
    fields.is_ok_and(|fields| fields.contains_key(name))
}

impl ConfigFile {
    /// The error of a file with `violations`.
    pub fn broken(&self, violations: Violations) -> CommandError {
        let problem =
            |broken: Violation| Problem { line: line(&self.text, &broken.path), at: broken.to_string() };
        CommandError::BrokenRules {
            path: self.path.clone(),
            problems: violations.into_iter().map(problem).collect(),
        }
    }
}

/// The line of the JSON `text` where the value at `path` begins, or the deepest value on the way to it. The
/// entries of a list go by their number, from 0 on. JSON is YAML.
pub(crate) fn line(text: &str, path: &[String]) -> Option<usize> {
    let documents = MarkedYaml::load_from_str(text).ok()?;
    let mut node = documents.first()?;
    for name in path {
        let value = match (node.data.as_mapping(), node.data.as_sequence()) {
            (Some(fields), _) => {
                fields.iter().find(|(key, _)| key.data.as_str() == Some(name)).map(|(_, value)| value)
            }
            (None, Some(entries)) => name.parse().ok().and_then(|number: usize| entries.get(number)),
            (None, None) => None,
        };
        let Some(value) = value else { break };
        node = value;
    }
    Some(node.span.start.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_game_is_no_configuration() {
        let game = ConfigSource::Text(r#"{ "muster_game": 1, "versions": [] }"#.to_owned());
        let refused = read(&game).unwrap_err().to_string();
        assert!(refused.contains("missing field `game_modes`"), "{refused}");
        assert!(
            refused.ends_with("this is an exported game, which `muster game import` and `--config` read"),
            "{refused}"
        );
        let broken = read(&ConfigSource::Text("{}".to_owned())).unwrap_err().to_string();
        assert!(!broken.contains("exported"), "{broken}");
    }

    #[test]
    fn a_path_leads_to_its_line() {
        let text = "{\n  \"game_modes\": {\n    \"a\": { \"regions\": [\"fra\"],\n      \"max_players\":\n 900 }\n  }\n}";
        let path = |text: &str| text.split('/').map(ToOwned::to_owned).collect::<Vec<_>>();
        for (at, expected) in [
            ("game_modes/too-few", 2),
            ("game_modes/a/regions/not-found", 3),
            ("game_modes/a/max_players/too-high", 5),
        ] {
            assert_eq!(line(text, &path(at)), Some(expected), "{at}");
        }
        assert_eq!(line("{", &path("a")), None);
        let list = "[ { \"a\": 1 },\n { \"a\":\n 2 } ]";
        for (at, expected) in [("0/a", 1), ("1/a/too-high", 3), ("1/b", 2), ("2", 1)] {
            assert_eq!(line(list, &path(at)), Some(expected), "{at}");
        }
    }
}

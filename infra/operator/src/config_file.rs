//! Files with a version's configuration, and the places of their errors.

use std::{
    ffi::OsString,
    fs,
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use saphyr::{LoadableYamlNode as _, MarkedYaml};
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

use crate::error::{CommandError, Problem};

/// The longest file of a configuration that is read, in bytes. A version may have 400 KB.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

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
        ConfigSource::File(path) => (path.clone(), text_of(path, CONFIG_BYTES_MAX)?),
        ConfigSource::Text(text) => (PathBuf::from("the text"), text.clone()),
    };
    let invalid = |at: String, line: Option<usize>, problem: String| CommandError::InvalidFile {
        path: path.clone(),
        at,
        line,
        problem,
    };
    if is_game_file(&text) {
        return Err(CommandError::OtherFile {
            path,
            is: "an exported game, which `muster game import` and the local stack's `--config` read",
            wanted: "the configuration of a version",
        });
    }
    let mut json = serde_json::Deserializer::from_str(&text);
    let config: Strict<VersionConfig> = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        invalid(error.path().to_string(), Some(error.inner().line()), for_people(error.inner()))
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

/// The text of a file of at most so many bytes. A device may have no end.
pub(crate) fn text_of(path: &Path, bytes_max: u64) -> Result<String, CommandError> {
    let read = || {
        let mut text = String::new();
        let bytes = fs::File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
        if bytes as u64 > bytes_max {
            let problem = format!("it has more than {} KB", bytes_max / 1_024);
            return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
        }
        Ok(text)
    };
    read().map_err(|error| CommandError::UnreadableFile { path: path.to_owned(), error })
}

/// Whether a text is an exported game, by the field that only such a file has.
fn is_game_file(text: &str) -> bool {
    has_field(text, "muster_game")
}

/// Whether a text is the configuration of a version, as far as a field shows that no exported game has.
pub(crate) fn is_config_file(text: &str) -> bool {
    has_field(text, "game_modes") && !is_game_file(text)
}

fn has_field(text: &str, name: &str) -> bool {
    serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok_and(|fields| fields.contains_key(name))
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

//! Files with a version's configuration, and the places of their errors.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use shared::{
    models::{
        game::Region,
        ids::RegionId,
        token::TokenKind,
        version::VersionConfig,
        violations::{Violation, Violations},
    },
    rules::version_config,
};

use crate::{
    error::{CommandError, Problem},
    mistakes::{self, line},
};

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
/// [`CommandError::UnreadableFile`]; [`CommandError::OtherFile`]; [`CommandError::BrokenRules`], with all
/// mistakes of the file and their lines.
pub(crate) fn read(source: &ConfigSource) -> Result<ConfigFile, CommandError> {
    let (path, text) = match source {
        ConfigSource::File(path) => (path.clone(), text_of(path, CONFIG_BYTES_MAX)?),
        ConfigSource::Text(text) => (PathBuf::from("the text"), text.clone()),
    };
    of_text(path, text)
}

/// The configuration in the text of a file.
///
/// # Errors
/// As [`read`], but for a file that cannot be read.
pub(crate) fn of_text(path: PathBuf, text: String) -> Result<ConfigFile, CommandError> {
    let other = |is: String| CommandError::OtherFile {
        path: path.clone(),
        is,
        wanted: "a version file, with `game_modes`",
    };
    match kind(&text) {
        Kind::Game => {
            let readers = "which `muster game import` and the local stack's `--config` read";
            return Err(other(format!("an exported game, {readers}")));
        }
        Kind::Other(is) => return Err(other(is)),
        Kind::Version | Kind::Unknown => {}
    }
    let (config, mut problems) = mistakes::read::<VersionConfig>(&text);
    match config {
        Some(config) if problems.is_empty() => Ok(ConfigFile { config, path, text }),
        config => {
            if let Some(config) = config {
                let broken = version_config::validate(&config, &named_regions(&config));
                problems.extend(problems_of(broken, &text));
            }
            Err(CommandError::BrokenRules { path, problems })
        }
    }
}

/// The regions that modes name, at no place in particular.
pub(crate) fn named_regions(config: &VersionConfig) -> BTreeMap<RegionId, Region> {
    let named = config.game_modes.values().flat_map(|mode| mode.regions.iter().cloned());
    let region = |region_id: RegionId| {
        let display_name = region_id.to_string();
        let provider_display_name = "Own".to_owned();
        let (latitude, longitude, probe, starter) = (0.0, 0.0, None, None);
        let region = Region { display_name, provider_display_name, latitude, longitude, probe, starter };
        (region_id, region)
    };
    named.map(region).collect()
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

/// What a text is, as far as its fields show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An exported game.
    Game,
    /// The configuration of a version.
    Version,
    /// Something else, in words.
    Other(String),
    /// Perhaps either: it is broken.
    Unknown,
}

/// How many fields of a file of another kind a message names.
const FIELDS_SHOWN: usize = 3;

/// The kind of a file's text.
pub(crate) fn kind(text: &str) -> Kind {
    if TokenKind::split(text.trim()).is_some() {
        return Kind::Other("a token".to_owned());
    }
    let Ok(fields) = serde_json::from_str::<serde_json::Map<_, _>>(text) else { return Kind::Unknown };
    let has = |name: &&str| fields.contains_key(*name);
    if ["muster_game", "versions", "namespaces"].iter().any(&has) {
        return Kind::Game;
    }
    if has(&"game_modes") {
        return Kind::Version;
    }
    let names: Vec<_> = fields.keys().take(FIELDS_SHOWN).map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        Kind::Unknown
    } else {
        Kind::Other(format!("JSON of something else, with {}", names.join(", ")))
    }
}

impl ConfigFile {
    /// The error of a file with `violations`.
    pub fn broken(&self, violations: Violations) -> CommandError {
        CommandError::BrokenRules { path: self.path.clone(), problems: problems_of(violations, &self.text) }
    }
}

/// Violations with the lines of a text.
fn problems_of(violations: Violations, text: &str) -> Vec<Problem> {
    let problem = |broken: Violation| Problem { line: line(text, &broken.path), at: broken.to_string() };
    violations.into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_named() {
        let token = format!("pub_{}\n", "eyJhbGciOi.J9-_".repeat(4));
        for (text, expected) in [
            (r#"{"game_modes": {}}"#, Kind::Version),
            (r#"{"muster_game": 1}"#, Kind::Game),
            (r#"{"namespaces": [], "game_modes": {}}"#, Kind::Game),
            (&token, Kind::Other("a token".to_owned())),
            (
                r#"{"name": "mine", "version": "1", "a": 1, "b": 2}"#,
                Kind::Other("JSON of something else, with `a`, `b`, `name`".to_owned()),
            ),
            ("{}", Kind::Unknown),
            ("{", Kind::Unknown),
            ("[1]", Kind::Unknown),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}

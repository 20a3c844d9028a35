//! All mistakes of a file at once, each with its line: a wrong value or an unknown field hides no other.

use std::collections::BTreeSet;

use saphyr::{LoadableYamlNode as _, MarkedYaml};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Segment, Track};
use shared::base::json::for_people;

use crate::error::Problem;

/// Reads a text of JSON, where no field may be unknown at any depth.
///
/// Returns all its mistakes, and the value without them, unless more is missing then than fields that may be
/// absent. Without mistakes there is a value.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<Problem>) {
    let mut value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            return (None, vec![Problem { line: Some(error.line()), at: format!("no JSON: {error}") }]);
        }
    };
    if !value.is_object() {
        return (None, vec![Problem { line: Some(1), at: "an object is needed".to_owned() }]);
    }
    // Of the text itself, which may give a name twice.
    let (mut read, mut unknown) = attempt::<T, _>(&mut serde_json::Deserializer::from_str(text));
    let mut problems = Vec::new();
    let mut is_whole = true;
    let mut removed: Vec<Vec<String>> = Vec::new();
    let read = loop {
        let (at, problem) = match read {
            Ok(read) => break Some(read),
            Err(found) => found,
        };
        // A field that may not be absent is not missing by mistake once it is removed.
        let is_consequence = removed
            .iter()
            .filter_map(|path| path.split_last())
            .any(|(name, parent)| parent == at && problem.contains(&format!("missing field `{name}`")));
        if is_consequence {
            is_whole = false;
        } else {
            problems.push((at.clone(), problem));
        }
        let Some(path) = remove(&mut value, &at, &mut is_whole) else { break None };
        removed.push(path);
        let (again, more) = attempt::<T, _>(&value);
        read = again;
        unknown.extend(more);
    };
    problems.extend(unknown.into_iter().map(|at| (at, "there is no such field".to_owned())));
    let mut problems: Vec<_> = problems
        .into_iter()
        .map(|(at, problem)| {
            let place = if at.is_empty() { problem } else { format!("{}: {problem}", at.join("/")) };
            Problem { line: line(text, &at), at: place }
        })
        .collect();
    problems.sort_by_key(|problem| problem.line);
    (read.filter(|_| is_whole), problems)
}

type Found = (Vec<String>, String);

/// The value, or its first mistake; and the unknown fields before that.
fn attempt<'de, T: Deserialize<'de>, D: serde::Deserializer<'de, Error = serde_json::Error>>(
    from: D,
) -> (Result<T, Found>, BTreeSet<Vec<String>>) {
    let (mut track, mut unknown) = (Track::new(), BTreeSet::new());
    let read = serde_ignored::deserialize(serde_path_to_error::Deserializer::new(from, &mut track), |path| {
        // The path has a step of its own for an optional part.
        unknown.insert(path.to_string().replace(".?", "").split('.').map(ToOwned::to_owned).collect());
    });
    let read = read.map_err(|error| {
        let segments = track.path();
        let steps = segments.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            _ => None,
        });
        let text = for_people(&error);
        let problem = text.rfind(" at line ").and_then(|at| text.get(..at)).unwrap_or(&text).to_owned();
        (steps.collect(), problem)
    });
    (read, unknown)
}

/// Removes what is at a path, as a field of an object. Returns its path; `None` when the whole value is
/// wrong.
fn remove(value: &mut Value, at: &[String], is_whole: &mut bool) -> Option<Vec<String>> {
    for end in (1..=at.len()).rev() {
        let (name, parent) = at.get(..end)?.split_last()?;
        let parent = value.pointer_mut(&pointer(parent));
        let Some(removed) = parent.and_then(Value::as_object_mut).and_then(|fields| fields.remove(name))
        else {
            continue;
        };
        *is_whole &= !removed.is_object() && !removed.is_array();
        return at.get(..end).map(<[String]>::to_vec);
    }
    None
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
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
    use shared::models::version::VersionConfig;

    use super::*;

    fn problems(text: &str) -> (bool, Vec<String>) {
        let (read, problems) = read::<VersionConfig>(text);
        (read.is_some(), problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_mistake_is_listed_with_its_line() {
        let text = r#"{
  "game_modes": {
    "arena": { "regions": ["fra"],
      "max_players": "8",
      "max_player": 8 },
    "duel": { "max_players": 2 },
    "solo": { "regions": "fra", "taggable": 1 },
    "ffa": 7
  },
  "captcha": [],
  "game_mode": {}
}"#;
        let (is_read, found) = problems(text);
        assert!(!is_read);
        let expected = [
            "line 4: game_modes/arena/max_players: a whole number from 0 to 4294967295 is needed, not a text",
            "line 5: game_modes/arena/max_player: there is no such field",
            "line 6: game_modes/duel: missing field `regions`",
            "line 7: game_modes/solo/regions: a list of texts is needed, not a text",
            "line 7: game_modes/solo/taggable: true or false is needed, not 1",
            "line 8: game_modes/ffa: an object is needed, not 7",
            "line 10: captcha: an object is needed, not a list",
            "line 11: game_mode: there is no such field",
        ];
        for line in expected {
            assert!(found.iter().any(|found| found == line), "{line}\n{found:#?}");
        }
        assert_eq!(found.len(), expected.len(), "{found:#?}");
    }

    #[test]
    fn what_is_left_without_optional_fields_can_still_be_checked() {
        let (is_read, found) =
            problems(r#"{"game_modes": {"a": {"regions": [], "max_players": "8", "x": 1}}}"#);
        assert!(is_read && found.len() == 2, "{found:?}");
        assert_eq!(problems(r#"{"game_modes": {"a": {"regions": ["fra"]}}}"#), (true, Vec::new()));
    }

    #[test]
    fn what_is_no_json_or_nothing_of_the_kind_is_one_mistake() {
        let one = |text: &str| {
            let (is_read, found) = problems(text);
            assert!(!is_read && found.len() == 1, "{text}: {found:?}");
            found.concat()
        };
        assert_eq!(one("{"), "line 1: no JSON: EOF while parsing an object at line 1 column 1");
        assert!(one("{\"game_modes\": {}} {").starts_with("line 1: no JSON: trailing characters"));
        assert_eq!(one("[]"), "line 1: an object is needed");
        assert_eq!(one("{}"), "line 1: missing field `game_modes`");
        let unnamed = one(r#"{"game_modes": {"a b": {"regions": ["fra"]}}}"#);
        assert!(unnamed.starts_with("line 1: game_modes"), "{unnamed}");
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

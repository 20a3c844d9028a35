//! CloudFormation's templates as JSON, in which they can be written as well.

use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::{Map, Value};

/// A template in YAML as JSON, with the long names of functions: `!Ref X` is `{"Ref": "X"}`, `!Sub X` is
/// `{"Fn::Sub": "X"}`, and `!GetAtt X.Arn` is `{"Fn::GetAtt": "X.Arn"}`.
pub fn template(text: &str) -> Value {
    json(&Yaml::load_from_str(text).expect("YAML")[0])
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Mapping(entries) => {
            let name = |yaml: &Yaml<'_>| yaml.as_str().expect("a name").to_owned();
            entries.iter().map(|(key, value)| (name(key), json(value))).collect()
        }
        Yaml::Tagged(tag, argument) => {
            let name = match tag.suffix.as_ref() {
                short @ ("Condition" | "Ref") => short.to_owned(),
                long => format!("Fn::{long}"),
            };
            Map::from_iter([(name, json(argument))]).into()
        }
        scalar => {
            let number =
                || scalar.as_integer().map(Value::from).or(scalar.as_floating_point().map(Value::from));
            let other = || scalar.as_bool().map(Value::from).or_else(number);
            scalar.as_str().map(Value::from).or_else(other).unwrap_or_default()
        }
    }
}

/// The text that a function such as `Ref` is of.
pub fn argument(function: &Value) -> Option<&str> {
    function.as_object()?.values().next()?.as_str()
}

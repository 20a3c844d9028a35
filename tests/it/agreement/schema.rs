//! The part of JSON Schema that the OpenAPI document uses, strictly: unknown keywords and properties are
//! refused.

use regex_lite::Regex;
use serde_json::Value;

use super::document::Document;

/// Checks values against the document's schemas.
#[derive(Clone, Copy)]
pub struct Schemas<'a>(pub &'a Document);

/// Keywords that say something to people only.
const ANNOTATIONS: [&str; 5] = ["default", "description", "example", "format", "title"];

impl<'a> Schemas<'a> {
    /// Where `value` does not fit `schema`, as text; empty when it fits.
    pub fn violations(self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(schema, value, "$", &mut found);
        found
    }

    fn check(self, schema: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let parts = self.parts(schema, value);
        self.check_parts(&parts, value, at, found);
        for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            let documents = |part: &&Value| {
                let others = &part["additionalProperties"];
                part["properties"].get(name).is_some() || others.is_object() || *others == Value::Bool(true)
            };
            if !parts.iter().any(documents) {
                found.push(format!("{at}.{name}: the property is not documented"));
            }
        }
    }

    /// Everything but whether properties are documented.
    fn check_parts(self, parts: &[&'a Value], value: &Value, at: &str, found: &mut Vec<String>) {
        for part in parts {
            for (keyword, wanted) in part.as_object().unwrap_or_else(|| panic!("no schema: {part}")) {
                if let Some(problem) = self.keyword(keyword, wanted, value, at, found) {
                    found.push(format!("{at}: {value} {problem}"));
                }
            }
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            self.property(parts, name, field, &format!("{at}.{name}"), found);
        }
    }

    /// The schema itself, what it refers to, and of its alternatives those that `value` fits: their keywords
    /// all count.
    fn parts(self, schema: &'a Value, value: &Value) -> Vec<&'a Value> {
        let mut parts = vec![schema];
        while let Some(reference) = parts.last().and_then(|part| part["$ref"].as_str()) {
            parts.push(self.0.target(reference));
        }
        let alternatives = parts.iter().flat_map(|part| [&part["anyOf"], &part["oneOf"]]);
        let alternatives = alternatives.filter_map(Value::as_array).flatten();
        let fitting = alternatives.filter(|schema| self.fits(schema, value));
        let of_fitting: Vec<_> = fitting.flat_map(|schema| self.parts(schema, value)).collect();
        parts.extend(of_fitting);
        parts
    }

    /// Whether `value` fits an alternative, whose properties may be documented beside it.
    fn fits(self, alternative: &'a Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.check_parts(&self.parts(alternative, value), value, "$", &mut found);
        found.is_empty()
    }

    fn property(self, parts: &[&'a Value], name: &str, field: &Value, at: &str, found: &mut Vec<String>) {
        let named: Vec<_> = parts.iter().filter_map(|part| part["properties"].get(name)).collect();
        for schema in &named {
            self.check(schema, field, at, found);
        }
        let others = parts.iter().find_map(|part| part.get("additionalProperties"));
        if let (true, Some(schema @ Value::Object(_))) = (named.is_empty(), others) {
            self.check(schema, field, at, found);
        }
    }

    fn keyword(
        self,
        keyword: &str,
        wanted: &'a Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) -> Option<String> {
        let fits = match keyword {
            // Handled with the schema as a whole.
            "$ref" | "properties" | "additionalProperties" => true,
            annotation if ANNOTATIONS.contains(&annotation) => true,
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_of_type(value, wanted)),
                wanted => is_of_type(value, wanted),
            },
            "enum" => list(wanted).contains(value),
            "not" => !self.fits(wanted, value),
            "anyOf" => list(wanted).iter().any(|schema| self.fits(schema, value)),
            "oneOf" => list(wanted).iter().filter(|schema| self.fits(schema, value)).count() == 1,
            "required" => match value {
                Value::Object(fields) => {
                    let mut names = list(wanted).iter().map(|name| name.as_str().expect("a name"));
                    names.all(|name| fields.contains_key(name))
                }
                _ => true,
            },
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(wanted, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            "propertyNames" => {
                for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
                    self.check(wanted, &Value::from(name.as_str()), &format!("{at} name"), found);
                }
                true
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= bound(wanted)),
            "maximum" => value.as_f64().is_none_or(|number| number <= bound(wanted)),
            "minLength" => length(value).is_none_or(|length| length >= bound(wanted)),
            "maxLength" => length(value).is_none_or(|length| length <= bound(wanted)),
            "minItems" => value.as_array().is_none_or(|items| items.len() as f64 >= bound(wanted)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as f64 <= bound(wanted)),
            "minProperties" => value.as_object().is_none_or(|fields| fields.len() as f64 >= bound(wanted)),
            "maxProperties" => value.as_object().is_none_or(|fields| fields.len() as f64 <= bound(wanted)),
            "pattern" => {
                let pattern = Regex::new(wanted.as_str().expect("a pattern")).expect("a regular expression");
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            unknown => panic!("{at}: the test does not know the keyword {unknown}"),
        };
        (!fits).then(|| format!("does not fit {keyword} {wanted}"))
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().expect("a type") {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("the test does not know the type {other}"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn bound(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Characters of a text.
fn length(value: &Value) -> Option<f64> {
    value.as_str().map(|text| text.chars().count() as f64)
}

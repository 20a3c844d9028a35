//! The places in the bodies of requests as the document's schemas describe them, and values that do not fit
//! there.

use serde_json::{Value, json};

use super::{operation::Operation, scene::Scene};
use crate::agreement::document::Document;

/// Values of each type, some at its edges, and texts that are no names.
const VALUES: &str = r#"[
    null, false, true, 0, 1, -1, 0.5, 1.0, 1e20, 4294967296, 18446744073709551615,
    "", " ", "1", "true", "null", "x", "a b", "a/b", "a:b", "a.b", "a\n", "a\u0085b", "-a", "a-", "a_b", "ä",
    [], [1], ["x", null], [["x"]], {}, { "0": "x" }, { "x": 1 }, { "x": null }
]"#;

/// Longer than a name may be.
const NAME_TOO_LONG: usize = 65;

/// A place in a body, as its schema describes it.
pub struct Place {
    pub operation: &'static Operation,
    /// A documented body that has the place.
    pub body: Value,
    /// Where it is, as a JSON pointer.
    pointer: String,
    /// The same as refusals write it.
    pub path: String,
    schema: &'static Value,
    pub field: Field,
}

/// Whether a place is a field of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Required(&'static str),
    Optional,
    /// An item of a list, an entry of a map, or the body.
    None,
}

/// The places of all bodies.
pub fn places() -> Vec<Place> {
    let mut places: Vec<_> = Operation::reading_object().map(Place::of_body).collect();
    let mut next = 0;
    while next < places.len() {
        let parts = places[next].parts();
        places.extend(parts);
        next += 1;
    }
    places
}

/// The least that fits a schema.
fn least(schema: &'static Value) -> Value {
    let of = |keyword| Document::read().keyword(schema, keyword);
    if let Some(words) = of("enum") {
        return words[0].clone();
    }
    let kind = of("type").map(|kind| if kind.is_array() { &kind[0] } else { kind });
    match kind.and_then(Value::as_str).unwrap_or_default() {
        "boolean" => true.into(),
        "integer" => of("minimum").cloned().unwrap(),
        "string" => "x".into(),
        "array" => json!([]),
        _ => {
            let required = of("required").and_then(Value::as_array).into_iter().flatten();
            let field = |name: &'static Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), least(&of("properties").unwrap()[name]))
            };
            required.map(field).collect::<serde_json::Map<_, _>>().into()
        }
    }
}

impl Place {
    fn of_body(operation: &'static Operation) -> Self {
        let (body, schema) = (operation.request_examples()[0].unwrap(), operation.request_schema().unwrap());
        let (pointer, path) = (String::new(), String::new());
        Self { operation, body: body.clone(), pointer, path, schema, field: Field::None }
    }

    fn keyword(&self, keyword: &str) -> Option<&'static Value> {
        Document::read().keyword(self.schema, keyword)
    }

    /// What the body has there.
    pub fn value(&self) -> &Value {
        self.body.pointer(&self.pointer).unwrap()
    }

    /// The places in this one.
    fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let required = self.keyword("required").and_then(Value::as_array);
        for (name, schema) in self.keyword("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.contains(&json!(name)));
            let field = if is_required { Field::Required(name) } else { Field::Optional };
            parts.push(self.part(name, format!("{}.{name}", self.path), schema, field));
        }
        if let Some(entry) = self.keyword("additionalProperties").filter(|schema| schema.is_object()) {
            let name = self.value().as_object().and_then(|entries| entries.keys().next());
            let name = name.map_or("x", String::as_str);
            parts.push(self.part(name, format!("{}.{name}", self.path), entry, Field::None));
        }
        if let Some(item) = self.keyword("items") {
            parts.push(self.part("0", format!("{}[0]", self.path), item, Field::None));
        }
        parts
    }

    fn part(&self, name: &str, path: String, schema: &'static Value, field: Field) -> Self {
        let pointer = format!("{}/{name}", self.pointer);
        let has_part = |body: &&Value| body.pointer(&pointer).is_some_and(|part| !part.is_null());
        let body = self.operation.request_examples().into_iter().flatten().find(has_part);
        let body = body.cloned().unwrap_or_else(|| self.body_with(name, least(schema)));
        let path = path.trim_start_matches('.').to_owned();
        Self { operation: self.operation, body, pointer, path, schema, field }
    }

    /// The body with one part more, and without the optional one that it cannot stand beside.
    fn body_with(&self, name: &str, part: Value) -> Value {
        let mut body = self.body.clone();
        match body.pointer_mut(&self.pointer).unwrap() {
            Value::Array(items) => items.push(part),
            object => object[name] = part,
        }
        let schema = self.operation.request_schema().unwrap();
        if Document::read().violations(schema, &body).is_empty() {
            return body;
        }
        let alternatives = ["port", "port_range"].into_iter().filter(|other| *other != name);
        let object = body.pointer_mut(&self.pointer).and_then(Value::as_object_mut).unwrap();
        alternatives.for_each(|other| drop(object.remove(other)));
        body
    }

    /// Where a value does not fit here. Unknown fields are ignored.
    pub fn misfits(&self, value: &Value) -> Vec<String> {
        let mut found = Document::read().violations(self.schema, value);
        found.retain(|misfit| !misfit.ends_with("the property is not documented"));
        found
    }

    /// Values that do not fit here.
    pub fn wrong_values(&self) -> Vec<Value> {
        let mut values: Vec<Value> = serde_json::from_str(VALUES).unwrap();
        let texts: Vec<_> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let value = self.value();
        values.extend([json!([value]), json!({ "x": value }), "x".repeat(NAME_TOO_LONG).into()]);
        values.extend(value.as_object().map(|fields| fields.values().cloned().collect()));
        values.extend(value.as_str().into_iter().flat_map(near));
        let bound = |keyword| self.keyword(keyword).and_then(Value::as_u64);
        values.extend(bound("minimum").and_then(|least| least.checked_sub(1)).map(Value::from));
        values.extend(bound("maximum").map(|most| json!(most + 1)));
        let count = |keyword| bound(keyword).map(|most| usize::try_from(most).unwrap() + 1);
        values.extend(count("maxLength").map(|length| json!("x".repeat(length))));
        let names = |count: usize| (0..count).map(|n| format!("n{n}"));
        values.extend(count("maxItems").map(|count| names(count).collect()));
        let entry =
            value.as_object().and_then(|entries| entries.values().next()).cloned().unwrap_or_default();
        values.extend(
            count("maxProperties").map(|count| names(count).map(|name| (name, entry.clone())).collect()),
        );
        if self.keyword("propertyNames").is_some() {
            let names = texts.into_iter().chain(["x".repeat(129)]);
            values.extend(names.map(|name| json!({ name: entry })));
        }
        // In a configuration, an optional field that is null is none.
        let is_optional = self.field == Field::Optional && self.path.starts_with("config.");
        values.retain(|value| !self.misfits(value).is_empty() && (!is_optional || !value.is_null()));
        values
    }

    /// The body for a scene with another value here.
    pub fn body_of(&self, scene: &Scene<'_>, value: Value) -> Value {
        let mut body = scene.realized(&self.body);
        *body.pointer_mut(&self.pointer).unwrap() = value;
        body
    }

    /// The body for a scene without the field.
    pub fn body_without(&self, scene: &Scene<'_>) -> Value {
        let mut body = scene.realized(&self.body);
        let (parent, name) = self.pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
        body
    }
}

/// Texts that differ a little from one that fits.
fn near(text: &str) -> Vec<Value> {
    let shorter: String = text.chars().skip(1).collect();
    let mut near = vec![
        json!(text.to_uppercase()),
        json!(format!("{text} ")),
        json!(shorter),
        json!({ text: null }),
        json!({ text: {} }),
    ];
    for at in (0..text.len().min(8)).chain(text.len().checked_sub(1)) {
        near.extend(["0", "3", "9", "x", " "].map(|other| {
            let mut text = text.to_owned();
            text.replace_range(at..=at, other);
            Value::from(text)
        }));
    }
    near
}

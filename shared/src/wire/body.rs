//! A request's body as JSON.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use crate::{
    base::{fields::fields_at, json::for_people},
    models::{
        errors::{Error, bad_body},
        handed_on::{DEPTH_MAX, HandedOn},
        warnings::{Warning, Warnings},
    },
};

/// A body of valid JSON, not parsed further yet.
#[derive(Clone, Debug)]
pub struct JsonBody<'a> {
    text: &'a [u8],
    value: Value,
    /// Fields that were taken out of it, whether or not they were there: a misspelt one may mean them.
    taken: Vec<&'static str>,
    warnings: &'a Warnings,
}

impl<'a> JsonBody<'a> {
    /// The body `text`, which holds `value`, of the request with `warnings`.
    pub(crate) const fn new(text: &'a [u8], value: Value, warnings: &'a Warnings) -> Self {
        Self { text, value, taken: Vec::new(), warnings }
    }

    /// The canonical text of all bodies that parse alike: names in order, without fields that are `null`.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut value = self.value.clone();
        strip_nulls(&mut value, &[]);
        value.to_string()
    }

    /// The body without `null` fields, at any depth, in the objects within the object at `pointer`, except
    /// below fields named `kept`. For types that do not take `null` as absent.
    #[must_use]
    pub fn without_nulls_in_each(mut self, pointer: &str, kept: &[&str]) -> Self {
        if let Some(Value::Object(fields)) = self.value.pointer_mut(pointer) {
            fields.values_mut().for_each(|field| strip_nulls(field, kept));
        }
        self
    }

    /// Takes out the field `name`, as it was sent, to pass on to another party; `None` when it is absent or
    /// `null`.
    ///
    /// # Errors
    /// As [`HandedOn::new`].
    pub fn take_handed_on(&mut self, name: &'static str) -> Result<Option<HandedOn>, Error> {
        self.taken.push(name);
        // Only the text has the field as it was sent. Most bodies lack it and are not read twice.
        let taken = self.value.as_object_mut().and_then(|fields| fields.remove(name));
        if taken.is_none_or(|value| value.is_null()) {
            return Ok(None);
        }
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(self.text).map_err(|error| bad_body(".", &error.to_string()))?;
        fields.get(name).map(|text| HandedOn::new(text, name, DEPTH_MAX)).transpose()
    }

    /// Takes out the fields `names`, which another type reads.
    #[must_use]
    pub fn split_off(&mut self, names: &[&'static str]) -> Self {
        self.taken.extend(names);
        let fields = |value: &mut Value| {
            let fields = value.as_object_mut()?;
            let taken = names.iter().filter_map(|name| Some(((*name).to_owned(), fields.remove(*name)?)));
            Some(taken.collect())
        };
        let value = fields(&mut self.value).map_or(Value::Null, Value::Object);
        Self { text: self.text, value, taken: Vec::new(), warnings: self.warnings }
    }

    /// The body as `T`, from an object; unknown fields get a warning, `null` equals absent for optional
    /// fields.
    ///
    /// # Errors
    /// [`Error::BadBody`], whose message names the path.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, Error> {
        // A derived struct would accept an array of its fields, too.
        if !self.value.is_object() {
            return Err(bad_body(".", "an object is needed"));
        }
        let mut warn = |path: serde_ignored::Path<'_>| {
            self.warnings.add(|| {
                let path = steps(&path);
                let taken = if path.len() == 1 { &self.taken[..] } else { &[] };
                Warning::unknown_field(&path, &[fields_at::<T>(&path), taken].concat())
            });
        };
        serde_path_to_error::deserialize(serde_ignored::Deserializer::new(self.value, &mut warn))
            .map_err(|error| bad_body(&error.path().to_string(), &for_people(error.inner())))
    }
}

/// The names and numbers on the way to a value.
fn steps(path: &serde_ignored::Path<'_>) -> Vec<String> {
    use serde_ignored::Path;
    let (parent, step) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(index.to_string())),
        Path::Map { parent, key } => (parent, Some(key.clone())),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    steps(parent).into_iter().chain(step).collect()
}

fn strip_nulls(value: &mut Value, kept: &[&str]) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            if !kept.contains(&name.as_str()) {
                strip_nulls(field, kept);
            }
            !field.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| strip_nulls(item, kept)),
        _ => {}
    }
}

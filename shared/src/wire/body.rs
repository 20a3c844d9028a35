//! A request's body as JSON.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use crate::models::{
    errors::{Error, bad_body},
    handed_on::{DEPTH_MAX, HandedOn},
};

/// A body of valid JSON, not parsed further yet.
#[derive(Clone, Debug)]
pub struct JsonBody<'a> {
    text: &'a [u8],
    value: Value,
}

impl<'a> JsonBody<'a> {
    /// The body `text`, which holds `value`.
    pub(crate) const fn new(text: &'a [u8], value: Value) -> Self {
        Self { text, value }
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

    /// The field `name`, as it was sent, to pass on to another party; `None` when it is absent or `null`.
    ///
    /// # Errors
    /// As [`HandedOn::new`].
    pub fn handed_on(&self, name: &str) -> Result<Option<HandedOn>, Error> {
        // Only the text has the field as it was sent. Most bodies lack it and are not read twice.
        if self.value.get(name).is_none_or(Value::is_null) {
            return Ok(None);
        }
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(self.text).map_err(|error| bad_body(".", &error.to_string()))?;
        fields.get(name).map(|text| HandedOn::new(text, name, DEPTH_MAX)).transpose()
    }

    /// The body as `T`, from an object; unknown fields are ignored, `null` equals absent for optional fields.
    ///
    /// # Errors
    /// [`Error::BadBody`], whose message names the path.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, Error> {
        // A derived struct would accept an array of its fields, too.
        if !self.value.is_object() {
            return Err(bad_body(".", "an object is needed"));
        }
        serde_path_to_error::deserialize(self.value)
            .map_err(|error| bad_body(&error.path().to_string(), &error.inner().to_string()))
    }
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

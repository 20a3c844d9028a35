//! Reading records of a later release. Two releases run side by side at every deployment and rollback, so a
//! record is read leniently: unknown fields are skipped, and an unknown value of an enum counts as the safe
//! one that its field's documentation names. Requests are strict ([`Strict`]). Writes name the attributes
//! that they change, so that all others stay.

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny, IntoDeserializer as _, value::StringDeserializer},
};

/// Text, or anything that a later release stores instead.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNot {
    Text(String),
    Else(IgnoredAny),
}

/// A value of an enum; `None` when this release does not know it.
///
/// # Errors
/// None but those of the format.
pub(crate) fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(match TextOrNot::deserialize(from)? {
        TextOrNot::Text(text) => of_text(text),
        TextOrNot::Else(IgnoredAny) => None,
    })
}

/// A map by values of an enum, without those that this release does not know.
///
/// # Errors
/// When the value of a known key does not fit.
pub(crate) fn known_keys<'de, D: Deserializer<'de>, K: DeserializeOwned + Ord, V: DeserializeOwned>(
    from: D,
) -> Result<BTreeMap<K, V>, D::Error> {
    let mut found = BTreeMap::new();
    for (key, value) in BTreeMap::<String, serde_json::Value>::deserialize(from)? {
        if let Some(key) = of_text(key) {
            found.insert(key, serde_json::from_value(value).map_err(D::Error::custom)?);
        }
    }
    Ok(found)
}

fn of_text<T: DeserializeOwned>(text: String) -> Option<T> {
    let text: StringDeserializer<serde::de::value::Error> = text.into_deserializer();
    T::deserialize(text).ok()
}

/// A part of a request in which an unknown field is an error, at any depth, because the field may be meant to
/// protect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strict<T> {
    value: T,
    unknown: Option<UnknownField>,
}

/// The path of an unknown field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown field `{0}`")]
pub struct UnknownField(pub String);

impl<T> Strict<T> {
    /// The value.
    ///
    /// # Errors
    /// [`UnknownField`]: the first one.
    pub fn known(self) -> Result<T, UnknownField> {
        match self.unknown {
            None => Ok(self.value),
            Some(unknown) => Err(unknown),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut unknown = None;
        let value = serde_ignored::deserialize(from, |path| {
            // The path has a step of its own for an optional part.
            unknown.get_or_insert_with(|| UnknownField(path.to_string().replace(".?", "")));
        })?;
        Ok(Self { value, unknown })
    }
}

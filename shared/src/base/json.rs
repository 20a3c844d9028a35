//! Strict JSON: only an object where an object is expected, though a derived struct would also accept an
//! array. And what is wrong with a JSON, in words.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
    forward_to_deserialize_any,
};

/// Deserializes an optional JSON object as `T`.
///
/// # Errors
/// Any other JSON value than an object that fits `T`, or `null`.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|object| object.0))
}

/// The value of `bytes`, which must be one JSON object.
///
/// # Errors
/// Anything but a JSON object that fits `T`.
pub fn strict_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes).map(|object: Object<T>| object.0)
}

/// Deserializes a JSON object as `T`.
///
/// # Errors
/// Any other JSON value than an object that fits `T`.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|object| object.0)
}

/// Deserializes a JSON object of objects, each as `T`.
///
/// # Errors
/// Any other JSON value, or an object whose values are other than objects that fit `T`.
pub fn objects_by_name<'de, D: Deserializer<'de>, K: Deserialize<'de> + Ord, T: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<K, T>, D::Error> {
    let objects = BTreeMap::<K, Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|(name, object)| (name, object.0)).collect())
}

/// A value that was an object on the wire. Its type sees the same deserializer, so that errors keep their
/// path.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(OnlyObject(from)).map(Self)
    }
}

/// A deserializer of objects alone.
struct OnlyObject<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OnlyObject<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(OnlyFields(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, OnlyFields(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A visitor that takes only an object.
struct OnlyFields<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OnlyFields<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

/// The problem with JSON for people who know JSON, but neither Rust nor serde.
#[must_use]
pub fn for_people(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (problem, place) = text.rfind(" at line ").map_or((&*text, ""), |at| text.split_at(at));
    let wrong = problem.strip_prefix("invalid type: ").or_else(|| problem.strip_prefix("invalid value: "));
    let wrong = wrong.and_then(|wrong| wrong.rsplit_once(", expected "));
    let Some((found, expected)) = wrong else { return text };
    let found = match found.split_once(' ').map_or(found, |(kind, _)| kind) {
        "string" => "a text",
        "sequence" => "a list",
        "map" => "an object",
        // Numbers and truths are in backticks.
        _ => found.split('`').nth(1).unwrap_or(found),
    };
    let expected = match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number, 0 or more,",
        "a string" => "a text",
        "a boolean" => "true or false",
        // All lists of the interface are of texts.
        "a sequence" => "a list of texts",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    };
    format!("{expected} is needed, not {found}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<T: DeserializeOwned>(json: &str) -> String {
        for_people(&serde_json::from_str::<T>(json).err().unwrap())
    }

    #[test]
    fn a_wrong_type_is_named_for_people() {
        let u32s = "a whole number from 0 to 4294967295 is needed, not";
        for (said, expected) in [
            (problem::<u32>(r#""7, expected 7""#), format!("{u32s} a text at line 1 column ")),
            (problem::<u32>("-1"), format!("{u32s} -1 at line 1 column ")),
            (problem::<u16>("0.5"), "a whole number from 0 to 65535 is needed, not 0.5 at ".to_owned()),
            (problem::<u64>("[]"), "a whole number, 0 or more, is needed, not a list at ".to_owned()),
            (problem::<String>("true"), "a text is needed, not true at ".to_owned()),
            (problem::<bool>("null"), "true or false is needed, not null at ".to_owned()),
            (problem::<Vec<String>>("{}"), "a list of texts is needed, not an object at ".to_owned()),
            (problem::<BTreeMap<String, String>>("[]"), "an object is needed, not a list at ".to_owned()),
            (problem::<Object<BTreeMap<String, String>>>("3"), "an object is needed, not 3 at ".to_owned()),
            (problem::<u32>("{"), format!("{u32s} an object at line 1 column ")),
            (
                problem::<BTreeMap<String, u8>>("{"),
                "EOF while parsing an object at line 1 column ".to_owned(),
            ),
        ] {
            assert!(said.starts_with(&expected), "{said}: {expected}");
        }
    }
}

//! The names of the fields that a type reads, to compare a misspelt one with.

use std::cell::Cell;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IntoDeserializer as _, MapAccess, Visitor, value},
    forward_to_deserialize_any,
};

/// The names of the fields beside the one at `path` in a `T`: none where no struct is.
#[must_use]
pub fn fields_at<'de, T: Deserialize<'de>>(path: &[String]) -> &'static [&'static str] {
    let found = Cell::default();
    // The walk ends with an error when it has arrived.
    let _arrived = T::deserialize(Walk { path, found: &found });
    found.get()
}

/// A value that consists only of the path to one field.
struct Walk<'a> {
    path: &'a [String],
    found: &'a Cell<&'static [&'static str]>,
}

impl<'de> Deserializer<'de> for Walk<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_map(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        if self.path.len() > 1 {
            return visitor.visit_map(self);
        }
        self.found.set(fields);
        Err(de::Error::custom("the fields are found"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Walk<'_> {
    type Error = value::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, value::Error> {
        let name = self.path.first().map(|name| name.as_str().into_deserializer());
        name.map(|name| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, value::Error> {
        let rest = self.path.split_first().map_or(&[][..], |(_, rest)| rest);
        self.path = &[];
        seed.deserialize(Walk { path: rest, found: self.found })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::json::{objects_by_name, optional_object};

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of its fields matter")]
    struct Outer {
        name: String,
        #[serde(default, deserialize_with = "optional_object")]
        inner: Option<Inner>,
        #[serde(deserialize_with = "objects_by_name")]
        many: BTreeMap<String, Inner>,
        tags: BTreeMap<String, String>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of its fields matter")]
    struct Inner {
        left: u32,
        right: Option<u32>,
    }

    #[test]
    fn the_fields_beside_a_path_are_those_of_the_struct_there() {
        let at = |path: &str| fields_at::<Outer>(&path.split('.').map(ToOwned::to_owned).collect::<Vec<_>>());
        assert_eq!(at("x"), ["name", "inner", "many", "tags"]);
        assert_eq!(at("inner.x"), ["left", "right"]);
        assert_eq!(at("many.any.x"), ["left", "right"]);
        for path in ["tags.x", "name.x", "unknown.x", "inner.left.x", "inner.right.x"] {
            assert_eq!(at(path), [""; 0], "{path}");
        }
        assert_eq!(fields_at::<Outer>(&[]), ["name", "inner", "many", "tags"]);
    }
}

//! Strict JSON: only an object where an object is expected. A derived struct would also accept an array.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
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

/// A value that was an object on the wire. It passes the map on while reading, so that errors keep their
/// path.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        from.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

//! Values of several bodies.

use serde::{Deserialize, Deserializer, Serialize};

/// The body `{}` of an operation whose response is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Empty {}

/// The value of a field that [`crate::wire::body::JsonBody::take_handed_on`] took out of the body before: at
/// most `null` is left of it.
pub(super) fn taken_out<'de, D: Deserializer<'de>, T>(from: D) -> Result<Option<T>, D::Error> {
    <()>::deserialize(from).map(|()| None)
}

pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

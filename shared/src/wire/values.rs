//! Values of several bodies.

use serde::{Deserialize, Deserializer, Serialize};

/// The body `{}` of an operation whose response is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Empty {}

pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

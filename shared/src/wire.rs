//! The bodies of the interface, exactly as on the wire: JSON in snake case, unknown fields ignored, `null` as absent.

use serde::{Deserialize, Deserializer};

mod cloud;
mod hosting;
mod overview;
mod seats;

pub use cloud::*;
pub use hosting::*;
pub use overview::*;
pub use seats::*;

fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

//! The bodies of the API, exactly as on the wire: JSON in snake case, unknown fields ignored, `null` as
//! absent.

pub mod body;
mod bootstrap;
mod cloud;
pub mod explanation;
mod hosting;
mod overview;
pub mod ports;
mod seats;
pub mod values;

pub use bootstrap::*;
pub use cloud::*;
pub use hosting::*;
pub use overview::*;
pub use seats::*;

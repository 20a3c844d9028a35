//! What owners and operators do: games, namespaces, versions and tokens.

pub mod issuing;
pub mod provision;
pub mod retirement;
pub mod versions;

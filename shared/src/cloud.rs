//! Operations of owners and operators: games, namespaces, versions and tokens.

pub mod issuing;
pub mod provision;
pub mod retirement;
pub mod versions;

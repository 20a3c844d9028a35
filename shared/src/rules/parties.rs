//! Which parties a request may seat (decision 73).

use crate::models::{errors::Error, namespace::Namespace, version::GameModeConfig};

/// Checks the size of a party in `namespace` that wants seats in lobbies of `modes`, each with what its
/// lobbies can hold.
///
/// # Errors
/// [`Error::PartyTooLarge`] above the largest party of a mode, above what its lobbies can hold, or above the
/// seats that one address may hold. A player alone is no party.
pub fn check_party<'a>(
    size: u32,
    modes: impl IntoIterator<Item = (&'a GameModeConfig, u32)>,
    namespace: &Namespace,
) -> Result<(), Error> {
    let largest = modes.into_iter().map(|(mode, capacity)| mode.largest_party().min(capacity));
    let largest = largest.chain(namespace.seats_per_client()).min().unwrap_or(1);
    if size > 1 && size > largest { Err(Error::PartyTooLarge { max: largest }) } else { Ok(()) }
}

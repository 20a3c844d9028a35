//! The note in a data folder that its game is elsewhere now, so that no second copy of it takes players.

use std::{fs, io, path::Path};

use crate::private;

/// Name of the note.
pub const FILE: &str = "moved";

/// Notes that the game of a folder is in the deployment `to` now.
///
/// # Errors
/// Errors of the file system.
pub fn note(folder: &Path, to: &str) -> io::Result<()> {
    private::write(&folder.join(FILE), to.as_bytes())
}

/// Where the game of a folder is, if it is not there.
///
/// # Errors
/// Errors of the file system.
pub fn noted(folder: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(folder.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

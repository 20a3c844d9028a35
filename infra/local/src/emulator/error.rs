//! Why the emulator does not run.

use std::{io, path::PathBuf};

use dynoxide::DynoxideError;

/// Why the emulator does not run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The data folder is a file.
    #[error("data folder {0} is not a folder")]
    NotAFolder(PathBuf),
    /// The data folder cannot be created, written or locked.
    #[error("data folder {folder} cannot be used: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another running stack uses the data folder.
    #[error("data folder {0} is in use by another running stack; stop it or choose another folder")]
    FolderInUse(PathBuf),
    /// The database cannot be opened.
    #[error("the database cannot be opened: {0}")]
    Database(#[source] DynoxideError),
    /// The data folder holds a table of another shape.
    #[error(
        "table {table} in the data folder differs from the template in its {part}; choose another folder"
    )]
    TableDiffers {
        /// Name of the table.
        table: String,
        /// The first difference.
        part: &'static str,
    },
    /// The emulator refuses a table of the template.
    #[error("table {table} cannot be created: {source}")]
    Table {
        /// Name of the table.
        table: String,
        /// The emulator's error.
        source: DynoxideError,
    },
    /// The system provides no port, runtime or thread.
    #[error("the database cannot be started: {0}")]
    Start(#[source] io::Error),
    /// The emulator ended before it was stopped.
    #[error("the database stopped: {0}")]
    Stopped(String),
}

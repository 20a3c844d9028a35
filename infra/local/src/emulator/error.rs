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
    /// The database of the data folder cannot be read.
    #[error(
        "the database {path} cannot be read: {problem}; if it is damaged, restore the folder from a copy or choose \
         another folder"
    )]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The data is of a later release.
    #[error(
        "the data in {path} has the form {found}, and this release ({release}) knows those up to {known}; install \
         the release that wrote it, or a later one, or restore a backup",
        release = env!("CARGO_PKG_VERSION"),
        known = super::stamp::FORM
    )]
    Newer {
        /// The database's file.
        path: PathBuf,
        /// Its form.
        found: u32,
    },
    /// This build of SQLite does not sync each write.
    #[error(
        "this program was built with a SQLite that does not sync each write: build it without LIBSQLITE3_FLAGS"
    )]
    NotDurable,
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

impl EmulatorError {
    /// The same of the data folder's database in `path`.
    pub(super) fn in_file(self, path: PathBuf) -> Self {
        use DynoxideError::{InternalServerError, SqliteError};
        match self {
            Self::Database(source)
            | Self::Table { source: source @ (SqliteError(_) | InternalServerError(_)), .. } => {
                // The emulator suspects encryption, which the local stack never has.
                let problem = match source.to_string() {
                    text if text.contains("encrypted") => "it is no database".to_owned(),
                    text => text,
                };
                Self::Unreadable { path, problem }
            }
            other => other,
        }
    }
}

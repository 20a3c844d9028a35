//! The number of the data's form, which the database's file carries, and whether its writes outlast a power
//! cut.

use std::{
    io,
    path::{self, Path},
};

use dynoxide::Database;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::EmulatorError;

/// Name of the database in a data folder.
pub const DATABASE_FILE: &str = "muster.db";

/// The form that this release writes. A release that writes what the one before it could not read has the
/// next number; new fields, tables and indexes need none.
pub const FORM: u32 = 1;

/// `PRAGMA synchronous` of a database that syncs its log at each commit.
const FULL: u32 = 2;

/// Opens a database's file as it is.
///
/// # Errors
/// Errors of SQLite.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // SQLite would read a relative path that begins with `file:` as a URI.
    let path = path::absolute(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// The form of a database's file; 0 of one that has no stamp yet.
///
/// # Errors
/// Errors of SQLite.
pub(crate) fn form(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Refuses the data of a later release, and stamps others.
///
/// # Errors
/// [`EmulatorError::Newer`], [`EmulatorError::NotDurable`] and [`EmulatorError::Unreadable`].
pub(super) fn check(path: &Path, is_durable: bool) -> Result<(), EmulatorError> {
    let unreadable = |error: rusqlite::Error| {
        let problem = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => "it is no database".to_owned(),
            _ => error.to_string(),
        };
        EmulatorError::Unreadable { path: path.to_owned(), problem }
    };
    let connection = connect(path).map_err(unreadable)?;
    let found = form(&connection).map_err(unreadable)?;
    if found > FORM {
        return Err(EmulatorError::Newer { path: path.to_owned(), found });
    }
    let stamp = || {
        // The mode first: what is written in another one would need a journal.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        if found != FORM {
            connection.pragma_update(None, "user_version", FORM)?;
        }
        // What this build of SQLite does by itself, which the emulator leaves as it is.
        connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, u32>(0))
    };
    if stamp().map_err(unreadable)? < FULL && is_durable {
        return Err(EmulatorError::NotDurable);
    }
    Ok(())
}

/// Opens the emulator's database in the file `path` of `folder`.
pub(super) fn database_in(folder: &Path, path: &Path) -> Result<dynoxide::Result<Database>, EmulatorError> {
    // SQLite would read a relative path that begins with `file:` as a URI.
    let path = path::absolute(path).and_then(|path| {
        path.into_os_string().into_string().map_err(|_| io::Error::other("its name is not UTF-8"))
    });
    let path = path.map_err(|source| EmulatorError::Folder { folder: folder.to_owned(), source })?;
    Ok(Database::new(&path))
}

//! A backup of a data folder, also while it is served, and a folder made of one.
//!
//! A backup is a data folder: the database as of one moment, and the signing key, without which its tokens
//! would be invalid.

use std::{
    fs, io,
    path::{self, Path, PathBuf},
};

use super::moved;
use crate::{
    emulator::stamp::{self, DATABASE_FILE, FORM},
    private, signing_key,
};

/// Why there is no backup, or no folder of one.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A folder without a database.
    #[error(
        "{0} has no {DATABASE_FILE}: name the folder that `muster-local serve --data` has, or a backup of it"
    )]
    NoData(PathBuf),
    /// A folder that has something in it.
    #[error("{0} is there already: name a folder that is not, so that nothing is overwritten")]
    Taken(PathBuf),
    /// The copy is not what a database must be.
    #[error("the database {path} is damaged: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        problem: String,
    },
    /// The data is of a later release.
    #[error(
        "{path} has the form {found} of a later release, and this one knows those up to {FORM}: install that release"
    )]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The form of its data.
        found: u32,
    },
    /// The database cannot be read or written.
    #[error("{path}: {source}")]
    Database {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Copies the data folder `from`, or a backup of one, as of one moment into the new folder `to`, and checks
/// the copy. Requests go on meanwhile: SQLite reads beside its one writer.
///
/// # Errors
/// [`BackupError`]; [`BackupError::Newer`] for data that this release cannot serve. Then there is no folder
/// `to`, unless the system does not let it go.
pub fn back_up(from: &Path, to: &Path) -> Result<(), BackupError> {
    let database = from.join(DATABASE_FILE);
    if !database.is_file() {
        return Err(BackupError::NoData(from.to_owned()));
    }
    let of_file = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::File { path, source }
    };
    // Under another name until it is whole.
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let making = to.with_file_name(name);
    if to.exists() {
        return Err(BackupError::Taken(to.to_owned()));
    }
    match fs::remove_dir_all(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of_file(&making)(error)),
        _ => private::create_folder(&making).map_err(of_file(&making))?,
    }
    let copied = copy(from, &making).and_then(|()| {
        fs::rename(&making, to).map_err(of_file(to))?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        private::sync(parent.unwrap_or(Path::new("."))).map_err(of_file(to))
    });
    if copied.is_err() {
        let _stays_where_it_must = fs::remove_dir_all(&making);
    }
    copied
}

fn copy(from: &Path, making: &Path) -> Result<(), BackupError> {
    let (source, target) = (from.join(DATABASE_FILE), making.join(DATABASE_FILE));
    let of_database = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::Database { path, source }
    };
    let connection = stamp::connect(&source).map_err(of_database(&source))?;
    let found = stamp::form(&connection).map_err(of_database(&source))?;
    if found > FORM {
        return Err(BackupError::Newer { path: from.to_owned(), found });
    }
    // Before SQLite does, which would create it for everybody to read. It accepts an empty file.
    let of_file = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::File { path, source }
    };
    let target = path::absolute(target).map_err(of_file(making))?;
    private::open(&target).map_err(of_file(&target))?;
    connection.execute("VACUUM INTO ?1", [target.to_string_lossy()]).map_err(of_database(&source))?;
    drop(connection);
    let copied = stamp::connect(&target).map_err(of_database(&target))?;
    let verdict: String =
        copied.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(of_database(&target))?;
    if verdict != "ok" {
        return Err(BackupError::Damaged { path: source, problem: verdict });
    }
    drop(copied);
    fs::File::open(&target).and_then(|file| file.sync_all()).map_err(of_file(&target))?;
    // The key, and where the game went, if it did: a copy of it must not take players either.
    for file in [signing_key::FILE, moved::FILE] {
        let path = from.join(file);
        match fs::read(&path) {
            Ok(bytes) => private::write(&making.join(file), &bytes).map_err(of_file(&path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && file == moved::FILE => {}
            Err(error) => return Err(of_file(&path)(error)),
        }
    }
    private::sync(making).map_err(of_file(making))
}

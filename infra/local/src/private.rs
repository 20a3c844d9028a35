//! Files and folders that hold secrets: only the user who runs the stack may read them.
//!
//! Where a system has no such rights, they are as its folders are.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Options with which a new file is for its owner alone.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder that only its owner may use, with its missing parents.
///
/// # Errors
/// Errors of the file system, none where the folder is there.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Has the system write the names of a folder's files to disk, which a file's own sync leaves out.
///
/// # Errors
/// Errors of the file system.
pub fn sync(folder: &Path) -> io::Result<()> {
    // Windows opens no folder as a file, and needs none of this.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Writes a file for its owner alone, whole or not at all, also over a power cut.
///
/// # Errors
/// Errors of the file system; then the file is as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Left by a process that was killed, and perhaps with other rights.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options().write(true).create_new(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Opens a file, which is created empty if it is missing, and leaves it to its owner alone.
///
/// # Errors
/// Errors of the file system.
pub fn open(path: &Path) -> io::Result<File> {
    let file = options().create(true).truncate(false).write(true).open(path)?;
    close(path)?;
    Ok(file)
}

/// Takes a file away from everybody but its owner, if it is there.
///
/// # Errors
/// Errors of the file system.
#[cfg(unix)]
pub fn close(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    match fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Does nothing.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn close(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The rights on a folder, if others than its owner have some.
///
/// # Errors
/// Errors of the file system.
#[cfg(unix)]
pub fn rights_of_others(folder: &Path) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(folder)?.permissions().mode() & 0o777;
    Ok((mode & 0o077 != 0).then_some(mode))
}

/// None.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn rights_of_others(_: &Path) -> io::Result<Option<u32>> {
    Ok(None)
}

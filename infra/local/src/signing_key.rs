//! The key that a local stack signs tokens with: fresh, or kept in its data folder for its owner alone.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use shared::base::ambient::Ambient;

const FILE: &str = "signing-key";

/// A key for a stack that keeps nothing.
#[must_use]
pub fn fresh(ambient: &Ambient) -> Vec<u8> {
    ambient.bytes::<32>().to_vec()
}

/// The key kept in `folder`; made there at the first start, readable by its owner alone.
///
/// # Errors
/// Whatever the file system refuses.
pub fn kept(folder: &Path, ambient: &Ambient) -> io::Result<Vec<u8>> {
    let path = folder.join(FILE);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&path) {
        Ok(mut file) => {
            let key = fresh(ambient);
            file.write_all(&key)?;
            file.sync_all()?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read(&path),
        Err(error) => Err(error),
    }
}

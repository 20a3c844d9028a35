//! The signing key of a local stack: fresh, or in its data folder, readable only by its owner.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use shared::base::ambient::Ambient;

const FILE: &str = "signing-key";

/// A key for a stack without data folder.
#[must_use]
pub fn fresh(ambient: &Ambient) -> Vec<u8> {
    ambient.bytes::<32>().to_vec()
}

/// The key in `folder`, which the first start creates, readable only by its owner.
///
/// # Errors
/// Errors of the file system.
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

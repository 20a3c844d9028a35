//! The signing key of a local stack: fresh, or in its data folder, readable only by its owner.

use std::{fs, io, path::Path};

use shared::base::ambient::Ambient;

use crate::private;

/// Name of the key in a data folder.
pub const FILE: &str = "signing-key";

const BYTES: usize = 32;

/// A new key for a data folder: as text, which the variable of a function and a secret in AWS can hold.
fn fresh_text(ambient: &Ambient) -> Vec<u8> {
    let digits =
        ambient.bytes::<BYTES>().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    digits.into_bytes()
}

/// A key for a stack without data folder.
#[must_use]
pub fn fresh(ambient: &Ambient) -> Vec<u8> {
    ambient.bytes::<BYTES>().to_vec()
}

/// The key in `folder`, which the first start creates, readable only by its owner.
///
/// # Errors
/// Errors of the file system, and [`io::ErrorKind::InvalidData`] for a damaged key.
pub fn kept(folder: &Path, ambient: &Ambient) -> io::Result<Vec<u8>> {
    let path = folder.join(FILE);
    match fs::read(&path) {
        Ok(key) if key.len() < BYTES => {
            let problem = format!(
                "it has {} bytes instead of {BYTES}; restore it from a copy, or delete it, and all tokens become \
                 invalid",
                key.len()
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, problem))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = fresh_text(ambient);
            private::write(&path, &key)?;
            Ok(key)
        }
        read => read,
    }
}

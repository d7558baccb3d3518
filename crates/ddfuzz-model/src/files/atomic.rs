//! Files that are there whole or not at all: a temporary file in the same folder, fsync, rename,
//! fsync of the folder.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

use crate::files::{FileError, folder};

/// What the names of temporary files begin with. One is left behind when its writer is killed;
/// readers skip them, and the next writer may remove them.
pub const TEMPORARY_PREFIX: &str = ".ddfuzz-tmp-";

/// Whether a file of this name is a temporary one of [`write()`], [`write_program`] or
/// [`create_new`].
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// Writes the file, or replaces it: at every moment a reader, and a power cut, finds either all
/// of the old bytes or all of the new ones.
///
/// # Errors
/// When any step fails; the old file then stands as it was, and no temporary file is left.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, 0o666)
}

/// Like [`write()`], and the file is executable.
///
/// # Errors
/// Those of [`write()`].
pub fn write_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, 0o777)
}

/// Writes a file that is not there yet, in the same way; an existing one is never replaced.
///
/// # Errors
/// Those of [`write()`], and one that [`FileError::is_existing`] when the file is there.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    create(path, bytes, 0o666)
}

/// Like [`create_new`], and the file is executable.
///
/// # Errors
/// Those of [`create_new`].
pub fn create_new_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    create(path, bytes, 0o777)
}

/// Like [`create_new`], for what is too long for memory: `fill` writes the bytes.
///
/// # Errors
/// Those of [`create_new`], and an error of `fill`; there is no file then.
pub fn create_new_from(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FileError> {
    keep(temporary(path, fill, 0o666)?, path)
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    keep(temporary(path, |file| file.write_all(bytes), mode)?, path)
}

fn keep(file: NamedTempFile, path: &Path) -> Result<(), FileError> {
    file.persist_noclobber(path)
        .map_err(|refused| FileError::at("create", path)(refused.error))?;
    folder::sync(folder::parent(path))
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    temporary(path, |file| file.write_all(bytes), mode)?
        .persist(path)
        .map_err(|refused| FileError::at("replace", path)(refused.error))?;
    folder::sync(folder::parent(path))
}

/// A synced temporary file with what `fill` writes in the folder of `path`. `mode` is narrowed by
/// the umask, as for any other file.
fn temporary(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    mode: u32,
) -> Result<NamedTempFile, FileError> {
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder::parent(path))
        .map_err(FileError::at("write", path))?;
    fill(file.as_file_mut())
        .and_then(|()| file.as_file().sync_all())
        .map_err(FileError::at("write", path))?;
    Ok(file)
}

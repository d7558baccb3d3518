//! Atomic writes: a file is either complete or absent. It is written to a temporary file in the
//! same folder, synced, and renamed; then the folder is synced.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

use crate::files::{FileError, folder, regular};

/// Prefix of the names of temporary files of atomic writes. If a writer is killed, its temporary
/// file remains; readers ignore it, and later writers may remove it.
pub const TEMPORARY_PREFIX: &str = ".ddfuzz-tmp-";

/// Prefix of the names of temporary files that their writers lock, so that [`remove_abandoned`]
/// does not remove the files of living writers.
const LOCKED_PREFIX: &str = ".ddfuzz-tmp-locked-";

/// Returns true if a file name is that of a temporary file of an atomic write: it begins with
/// [`TEMPORARY_PREFIX`].
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// Writes or replaces a file atomically: readers, and a power cut, see either all old bytes or all
/// new ones.
///
/// # Errors
/// If `path` is something other than a regular file or a symbolic link, such as a device, or if a
/// step fails; the old file is then unchanged, and no temporary file remains.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |file| file.write_all(bytes), 0o666)
}

/// Writes or replaces a file like [`write()`], but does not wait until it is on the device: readers
/// see either all old bytes or all new ones, but after a power cut the file may be damaged.
///
/// # Errors
/// As [`write()`].
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = empty_temporary(path, 0o666).map_err(FileError::at("write", path))?;
    (file.as_file_mut().write_all(bytes)).map_err(FileError::at("write", path))?;
    persist(file, path)
}

/// Writes or replaces a file like [`write()`]; a file that exists keeps its permissions.
///
/// # Errors
/// As [`write()`].
pub fn rewrite(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let Ok(before) = path.metadata() else {
        return write(path, bytes);
    };
    let fill = |file: &mut File| {
        file.set_permissions(before.permissions())?;
        file.write_all(bytes)
    };
    replace(path, fill, 0o600)
}

/// Writes or replaces an executable file atomically, like [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn write_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |file| file.write_all(bytes), 0o777)
}

/// Writes a new file atomically; an existing file is never replaced.
///
/// # Errors
/// As [`write()`]; if the file exists, an error for which [`FileError::is_existing`] is true.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    create(path, bytes, 0o666)
}

/// Writes a new executable file atomically; an existing file is never replaced.
///
/// # Errors
/// As [`create_new`].
pub fn create_new_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    create(path, bytes, 0o777)
}

/// Writes a new file atomically, for content that does not fit into memory: `fill` writes the bytes
/// into the file. An existing file is never replaced.
///
/// # Errors
/// As [`create_new`], and errors of `fill`; no file is created then.
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

fn replace(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    mode: u32,
) -> Result<(), FileError> {
    let file = temporary(path, fill, mode)?;
    persist(file, path)?;
    folder::sync(folder::parent(path))
}

/// Renames a temporary file to `path`. Fails if there is something at `path` that is neither a
/// regular file nor a symbolic link, such as a device, because the file would replace it.
fn persist(file: NamedTempFile, path: &Path) -> Result<(), FileError> {
    let is_odd = |there: Metadata| !there.is_file() && !there.is_symlink();
    if path.symlink_metadata().is_ok_and(is_odd) {
        let why = "it is not a regular file";
        let error = io::Error::new(io::ErrorKind::InvalidInput, why);
        return Err(FileError::at("replace", path)(error));
    }
    let kept = file.persist(path);
    kept.map(drop)
        .map_err(|refused| FileError::at("replace", path)(refused.error))
}

/// Removes the temporary files of atomic writes in a folder whose writers were killed. Files of
/// living writers, in any process or container, are locked and stay; files on file systems without
/// locks, and files that cannot be removed, stay as well.
pub fn remove_abandoned(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if !(name.as_encoded_bytes()).starts_with(LOCKED_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let options = &mut OpenOptions::new();
        let Ok(file) = regular::open_to_write(options.write(true), &path) else {
            continue;
        };
        // The lock is held until the name is gone: a writer that gets it later sees that.
        if file.try_lock().is_ok() && is_at(&file, &path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns true if `path` names the file or directory that is open as `file`, without following a
/// symbolic link at `path`.
pub fn is_at(file: &File, path: &Path) -> bool {
    let id = |facts: Metadata| (facts.dev(), facts.ino());
    let there = path.symlink_metadata().map(id).ok();
    there.is_some() && file.metadata().map(id).ok() == there
}

/// Creates an empty temporary file in the folder of `path`, locked until it is closed.
fn empty_temporary(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    loop {
        let file = tempfile::Builder::new()
            .prefix(LOCKED_PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder::parent(path))
            .map_err(without_path)?;
        // A file system may have no locks; then nobody removes the file of another one.
        let is_locked = file.as_file().lock().is_ok();
        if !is_locked || is_at(file.as_file(), file.path()) {
            return Ok(file);
        }
        // Another process has taken it for abandoned between its creation and its lock.
    }
}

/// Returns the system's error without the name of the temporary file, which `tempfile` adds and
/// which says nothing to the user; the error's kind stays.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" at path ")) {
        (None, Some((system, _))) => io::Error::new(error.kind(), system),
        _ => error,
    }
}

/// Creates a temporary file in the folder of `path`, with the content that `fill` writes, and syncs
/// it. `mode` is the file's permission mode before the umask.
fn temporary(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    mode: u32,
) -> Result<NamedTempFile, FileError> {
    let mut file = empty_temporary(path, mode).map_err(FileError::at("write", path))?;
    fill(file.as_file_mut())
        .and_then(|()| file.as_file().sync_all())
        .map_err(FileError::at("write", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_and_not_the_temporary_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("missing/file");
        for error in [write(&path, b""), write_unsynced(&path, b"")] {
            let error = error.expect_err("there is no folder");
            assert!(error.is_missing(), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("missing/file: "), "{text}");
            assert!(!text.contains(TEMPORARY_PREFIX), "{text}");
        }
    }
    #[test]
    fn only_the_file_of_a_killed_writer_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let living = empty_temporary(&path, 0o600).expect("a file");
        let killed = empty_temporary(&path, 0o600).expect("a file");
        let (_, killed) = killed.keep().expect("it stays, closed");
        let others = [".ddfuzz-tmp-old", "file"].map(|name| folder.path().join(name));
        for other in &others {
            std::fs::write(other, b"").expect("written");
        }
        remove_abandoned(folder.path());
        assert!(!killed.exists());
        assert!(living.path().exists() && others.iter().all(|other| other.exists()));
        persist(living, &path).expect("it is renamed");
    }
}

//! Creates and syncs folders, so that their entries survive a power cut; absolute and real paths.

use std::path::{Component, Path, PathBuf};
use std::{fs, fs::File, io};

use crate::files::FileError;

/// Syncs the folder: writes its list of names (new files, renames) through to the storage device,
/// so that it survives a power cut.
///
/// # Errors
/// If the folder cannot be opened or synced.
pub fn sync(folder: &Path) -> Result<(), FileError> {
    match File::open(folder).and_then(|file| file.sync_all()) {
        // Some file systems (FUSE, network) do not support fsync of folders.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        answer => answer.map_err(FileError::at("sync the folder", folder)),
    }
}

/// Creates the folder and all missing parents, and syncs the parents, so that the new folders
/// survive a power cut.
///
/// # Errors
/// If a folder cannot be created, for example because a file has its name.
pub fn create_all(folder: &Path) -> Result<(), FileError> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = parent(folder);
    create_all(parent)?;
    match fs::create_dir(folder) {
        Ok(()) => sync(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(FileError::at("make the folder", folder)(error)),
    }
}

/// Returns the path of the folder that contains `path`: `.` for a bare file name; for the root,
/// which is in no folder, `path` itself.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Returns the absolute form of `path`, with symbolic links and `..` as they are; `path` itself if
/// the current directory is gone.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns an absolute path with symbolic links and `..` resolved. In the part of the path that
/// does not exist, `..` removes the name before it.
pub fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut parts = path.components();
    let Some(last) = parts.next_back() else {
        return Path::new(".").canonicalize().unwrap_or_default();
    };
    let mut above = real(parts.as_path());
    match last {
        Component::ParentDir => drop(above.pop()),
        last => above.push(last),
    }
    above
}

//! Creates and syncs folders, so that their entries survive a power cut.

use std::{fs, fs::File, io, path::Path};

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

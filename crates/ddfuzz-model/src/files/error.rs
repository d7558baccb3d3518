//! The error of a file operation, with its path.

use std::io;
use std::path::{Path, PathBuf};

/// A failed file operation: the operation, the path, and the error of the system.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// What a user can do if the operation failed because the disk [is full](FileError::is_full).
    pub const FREE_SPACE: &'static str = "free some space, and repeat the command";

    /// Returns a closure for `map_err` that adds the operation `doing` ("read", "lock") and the
    /// path to an [`io::Error`].
    pub fn at<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
        move |source| FileError {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the path of the file or folder on which the operation failed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error with which the system refused the operation.
    pub fn io(&self) -> &io::Error {
        &self.source
    }

    /// Returns the error of the system, without operation and path, for a caller that names these
    /// in its own error.
    pub fn into_io(self) -> io::Error {
        self.source
    }

    /// Returns true if the operation failed because the device, or the user's quota on it, is full
    /// (`ENOSPC`, `EDQUOT`).
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Returns true if the operation failed because the file system is mounted read-only (`EROFS`).
    pub fn is_read_only(&self) -> bool {
        self.source.kind() == io::ErrorKind::ReadOnlyFilesystem
    }

    /// Returns true if the operation failed because the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Returns true if the operation failed because the file exists although it must not
    /// ([`super::atomic::create_new`]).
    pub fn is_existing(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

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
    /// Adds the operation `doing` ("read", "lock") and the path to an [`io::Error`], for use with
    /// `map_err`.
    pub fn at<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
        move |source| FileError {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Error of the system.
    pub fn io(&self) -> &io::Error {
        &self.source
    }

    /// Whether the device, or the user's quota on it, is full (`ENOSPC`, `EDQUOT`).
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Whether the file system is mounted read-only (`EROFS`).
    pub fn is_read_only(&self) -> bool {
        self.source.kind() == io::ErrorKind::ReadOnlyFilesystem
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the file exists although it must not ([`super::atomic::create_new`]).
    pub fn is_existing(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

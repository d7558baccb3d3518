//! What went wrong with which file.

use std::io;
use std::path::{Path, PathBuf};

/// A failed file operation: what was being done, to which path, and the system's answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Makes an [`io::Error`] one that says it happened on doing `doing` ("read", "lock") to
    /// `path`; to be used with `map_err`.
    pub fn at<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
        move |source| FileError {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// The path concerned.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The system's answer.
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

    /// Whether there was no such file.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the file was there already ([`super::atomic::create_new`]).
    pub fn is_existing(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

//! Lock files, for one writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::files::{FileError, regular};

/// Reason why a lock on a file was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process, or another [`Lock`] of this process, holds the lock.
    #[error("{} is locked by {}", path.display(), match holder {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    })]
    AlreadyLocked {
        /// Path of the lock file that is locked already.
        path: PathBuf,
        /// Process id of the process that holds the lock; `None` if that process has not written it
        /// into the file yet.
        holder: Option<u32>,
    },
    /// The lock file cannot be opened or locked.
    #[error(transparent)]
    File(#[from] FileError),
}

/// An exclusive lock on a lock file, held until it is dropped or the process ends in any way. While
/// the lock is held, the file contains the process id of the holder. The file itself is never
/// removed.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Acquires the lock on the file at `path`, which is created if needed, without waiting.
    /// Returns the lock, which dropping releases.
    ///
    /// # Errors
    /// [`LockError::AlreadyLocked`] if another process, or another `Lock` of this process, holds
    /// the lock.
    pub fn acquire(path: &Path) -> Result<Lock, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = regular::open_to_write(&mut options, path);
        let mut file = file.map_err(FileError::at("open the lock file", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::AlreadyLocked {
                    path: path.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(FileError::at("lock", path)(error).into());
            }
        }
        // The id is only for error messages of other processes, so a full disk does no harm.
        let _ = file
            .set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { file })
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removing the file instead would let two later writers lock two different files.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

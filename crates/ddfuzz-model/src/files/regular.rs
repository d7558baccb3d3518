//! Reading files that others wrote: only regular ones, and never more than is asked for.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Why a file's bytes are not to be had; its text has no path in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// There is none of this name.
    #[error("it does not exist")]
    Missing,
    /// It is no regular file.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// It is longer than what was asked for.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The most that was asked for, in bytes.
        limit: u64,
    },
    /// The system's answer.
    #[error("{0}")]
    Refused(String),
}

/// The bytes of a regular file of at most `limit` bytes. A fifo, a socket or a device is neither
/// waited for nor read.
///
/// # Errors
/// Whatever keeps the bytes away: see [`Unread`].
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    // First by its name: to open some devices does something.
    let named = path.metadata().map_err(|error| match why(&error) {
        Unread::Missing if path.is_symlink() => Unread::NotAFile("a link that leads nowhere"),
        other => other,
    })?;
    check(&named, limit)?;
    // What the name leads to may have changed since.
    let (file, opened) = open(path)?;
    check(&opened, limit)?;
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len()).unwrap_or(0));
    (file.take(limit.saturating_add(1)).read_to_end(&mut bytes)).map_err(|error| why(&error))?;
    match bytes.len() as u64 > limit {
        true => Err(Unread::TooLarge { limit }),
        false => Ok(bytes),
    }
}

/// Opens what is known to be a regular file by its entry in a directory, and gives its facts. What
/// stands there by now instead is not waited for.
///
/// # Errors
/// [`Unread`], never that it is too large.
pub fn open(path: &Path) -> Result<(File, Metadata), Unread> {
    // Without O_NONBLOCK a fifo would block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| why(&error))?;
    let opened = file.metadata().map_err(|error| why(&error))?;
    match special(opened.file_type()) {
        Some(kind) => Err(Unread::NotAFile(kind)),
        None => Ok((file, opened)),
    }
}

fn check(facts: &std::fs::Metadata, limit: u64) -> Result<(), Unread> {
    if let Some(kind) = special(facts.file_type()) {
        return Err(Unread::NotAFile(kind));
    }
    match facts.len() > limit {
        true => Err(Unread::TooLarge { limit }),
        false => Ok(()),
    }
}

/// What a file is that is no regular one.
pub fn special(kind: std::fs::FileType) -> Option<&'static str> {
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a fifo")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_symlink() {
        Some("a link")
    } else {
        Some("a device")
    }
}

fn why(error: &std::io::Error) -> Unread {
    match error.kind() {
        std::io::ErrorKind::NotFound => Unread::Missing,
        _ => Unread::Refused(error.to_string()),
    }
}

//! Reads files of unknown origin: only regular files, and only up to a size limit.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// Reason why a file was not opened or read: it is missing, not a regular file, or too large, or
/// the system refused. The message does not name the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// No file exists at the path that was to be read.
    #[error("it does not exist")]
    Missing,
    /// The file is not a regular one; the text says what it is, such as `a fifo`.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// The file is larger than the limit that the caller has set.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes that the caller has set for the file.
        limit: u64,
    },
    /// The system refused to read the file; the text is its error.
    #[error("{0}")]
    Refused(String),
}

/// Reads a regular file of at most `limit` bytes. Fifos, sockets and devices are neither opened nor
/// waited for.
///
/// # Errors
/// [`Unread`] if the file is missing, not regular, too large, or cannot be read.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    // Checked by name first, because opening a device may have effects.
    let named = path.metadata().map_err(|error| match why(&error) {
        Unread::Missing if path.is_symlink() => Unread::NotAFile("a link that leads nowhere"),
        other => other,
    })?;
    check(&named, limit)?;
    // The name may belong to another file by now.
    let (file, opened) = open(path)?;
    check(&opened, limit)?;
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len()).unwrap_or(0));
    (file.take(limit.saturating_add(1)).read_to_end(&mut bytes)).map_err(|error| why(&error))?;
    match bytes.len() as u64 > limit {
        true => Err(Unread::TooLarge { limit }),
        false => Ok(bytes),
    }
}

/// Opens a regular file for reading and returns it with its metadata. It never waits: if a fifo or
/// a device is at the path, this is an error.
///
/// # Errors
/// Any [`Unread`] except [`Unread::TooLarge`].
pub fn open(path: &Path) -> Result<(File, Metadata), Unread> {
    // Without O_NONBLOCK a fifo would block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    checked(file)
}

/// Opens the regular file `name` in the open directory `directory`, and returns it with its
/// metadata, as [`open()`] does. To open many files of one directory in this way takes less time
/// than to open each of them by its path.
///
/// # Errors
/// As [`open()`].
pub fn open_in(directory: &File, name: &OsStr) -> Result<(File, Metadata), Unread> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = openat(directory, name, flags, Mode::empty());
    checked(file.map(File::from).map_err(io::Error::from))
}

/// Returns a file that was just opened, with its metadata. Fails if `file` is an error of opening,
/// or if the file is not a regular one.
fn checked(file: io::Result<File>) -> Result<(File, Metadata), Unread> {
    let file = file.map_err(|error| why(&error))?;
    let opened = file.metadata().map_err(|error| why(&error))?;
    match special(opened.file_type()) {
        Some(kind) => Err(Unread::NotAFile(kind)),
        None => Ok((file, opened)),
    }
}

/// Opens a regular file for writing, as `options` say. It neither waits nor follows a symbolic link,
/// which somebody else may have put into a directory in place of the file.
///
/// # Errors
/// When the file is a link or not regular, or cannot be opened.
pub(super) fn open_to_write(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link, and is not written through"),
        _ => error,
    })?;
    match special(file.metadata()?.file_type()) {
        Some(kind) => Err(io::Error::other(format!("it is {kind}"))),
        None => Ok(file),
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

/// Returns a description of a file type that is not a regular file ("a directory", "a fifo");
/// `None` for a regular file.
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

//! Files and encodings: atomic writes ([`atomic`]), one writer at a time ([`Lock`]), append-only
//! files ([`Appender`]) and those of JSON lines ([`Journal`]), folders that survive a power cut
//! ([`folder`]), replacement of a whole folder ([`swap`]), files of unknown origin ([`regular`]),
//! and free space ([`space`]). JSON forms of bytes ([`Base64`]) and of names that need not be UTF-8
//! ([`OsText`]). Text of unknown origin without control characters ([`printable()`]), and words of
//! a shell ([`shell`]).
//!
//! Errors are [`FileError`]s, which name the path and the operation; [`regular`] has errors of its
//! own.

mod appender;
pub mod atomic;
mod encoding;
mod error;
pub mod folder;
mod journal;
mod lock;
mod printable;
pub mod regular;
pub mod shell;
pub mod space;
pub mod swap;

pub use appender::{Appender, Position};
pub use encoding::{Base64, OsText};
pub use error::FileError;
pub use journal::Journal;
pub use lock::{Lock, LockError};
pub use printable::{escaped_lines, escaped_markup, printable};

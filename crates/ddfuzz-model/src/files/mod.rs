//! A leaf: whole or not at all ([`atomic`]), one writer at a time ([`Lock`]), append-only
//! ([`Appender`]), folders that survive a power cut ([`folder`]), and what JSON has no form for:
//! bytes ([`Base64`]) and names that need not be UTF-8 ([`OsText`]); text of others without what
//! moves a cursor ([`printable()`]).
//!
//! Localized here: `tempfile` (atomic writes), `base64`, and what [`swap`] needs of `nix`.
//!
//! What others wrote is read by [`regular`]. Every other error is a [`FileError`], which carries the path and what was being done to it.

mod appender;
pub mod atomic;
mod encoding;
mod error;
pub mod folder;
mod lock;
mod printable;
pub mod regular;
pub mod shell;
pub mod space;
pub mod swap;

pub use appender::Appender;
pub use encoding::{Base64, OsText};
pub use error::FileError;
pub use lock::{Lock, LockError};
pub use printable::printable;

//! A leaf: whole or not at all ([`atomic`]), one writer at a time ([`Lock`]), append-only
//! ([`Appender`]), and folders that survive a power cut ([`folder`]).
//!
//! Every error is a [`FileError`], which carries the path and what was being done to it.

mod appender;
pub mod atomic;
mod error;
pub mod folder;
mod lock;

pub use appender::Appender;
pub use error::FileError;
pub use lock::{Lock, LockError};

//! Naming a crashing input by its keys.

use crate::exec::{Ended, ExecError};
use crate::triage::{Class, Crash, Key};

/// The keys of one run, without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quick {
    /// It crashed.
    Crash {
        /// What kind of death.
        class: Class,
        /// Which bug.
        major: Key,
        /// Which way into it.
        minor: Key,
    },
    /// It ended without a crash.
    Ended(Ended),
}

/// Runs an input once more, watched closely, and names its crash.
pub trait Keyer: Send {
    /// The keys only, as quickly as possible.
    ///
    /// # Errors
    /// When the target cannot be run under watch.
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError>;

    /// The whole record; `None` where no try crashed.
    ///
    /// # Errors
    /// As [`key`](Keyer::key).
    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError>;
}

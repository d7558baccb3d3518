//! Naming a crashing input by its keys.

use crate::exec::ExecError;
use crate::triage::{Crash, Quick, Triager, Verdict};

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

impl Keyer for Triager {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        Triager::key(self, input)
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Ok(match Triager::examine(self, input)? {
            Verdict::Crash(crash) => Some(crash),
            Verdict::Flaky { .. } => None,
        })
    }
}

//! Naming a crashing input by its keys.

use ddfuzz_exec::{Ended, ExecError};
use ddfuzz_triage::{Crash, Quick, Triager, Verdict};

/// Runs an input once more, watched closely, and names its crash.
pub trait Keyer: Send {
    /// The keys only, as quickly as possible.
    ///
    /// # Errors
    /// When the target cannot be run under watch.
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError>;

    /// Whether a run that ended so may be a crash; `crash_exit` is the exit status that counts as
    /// one. What it said decides, by [`key`](Keyer::key).
    fn suspects(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        ended.is_suspect(crash_exit)
    }

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

    fn suspects(&self, ended: Ended, _crash_exit: Option<i32>) -> bool {
        Triager::suspects(self, ended)
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Ok(match Triager::examine(self, input)? {
            Verdict::Crash(crash) => Some(crash),
            Verdict::Flaky { .. } => None,
        })
    }
}

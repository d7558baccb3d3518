//! A scripted executor, by which everything above this crate is tested without processes.

use crate::{ExecError, Executor, Freshness, Run, Way};

/// An executor whose runs are computed by a closure.
pub struct Mock<F> {
    script: F,
    /// How many runs were made.
    pub runs: u64,
}

impl<F: FnMut(&[u8]) -> Run + Send> Mock<F> {
    /// A mock that answers each input with `script`.
    pub fn new(script: F) -> Mock<F> {
        Mock { script, runs: 0 }
    }
}

impl<F: FnMut(&[u8]) -> Run + Send> Executor for Mock<F> {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        self.runs += 1;
        Ok((self.script)(input))
    }

    fn way(&self) -> Way {
        Way::Mock
    }

    fn freshness(&self) -> Freshness {
        Freshness::Fresh
    }
}

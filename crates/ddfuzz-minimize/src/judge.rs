//! Who answers the questions of a minimization.

use super::progress::Progress;
use super::{Answer, Oracle, OracleError, Slip};
use ddfuzz_delta::Hints;
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::Crash;

/// An answer, and what the run told besides: nothing, unless it was observed.
pub(super) type Told = (Answer, Hints);

/// Answers the questions of a minimization, one after the other: an oracle by itself, or workers
/// that run ahead.
pub(super) trait Judge {
    /// The answer to the question that is due. No more than `left` tests will be asked, this one
    /// included, where there is a limit; a test of a flaky input may be several runs.
    fn answer(
        &mut self,
        progress: &Progress,
        left: Option<u64>,
    ) -> Result<Option<Told>, OracleError>;

    /// Limits the time of all runs that are asked for from here on.
    fn limit_time(&mut self, learned: TimeLimit);

    /// The record of a slip that came without one although its keys are new.
    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError>;

    /// Slips of tests that were run ahead in vain, each handed out once.
    fn strays(&mut self) -> Vec<Slip>;

    /// Ends all runs that are under way; gives the number of those that were made in vain.
    fn finish(&mut self) -> u64;
}

/// An oracle that is asked only what is due.
pub(super) struct Alone<'a>(pub &'a mut dyn Oracle);

impl Judge for Alone<'_> {
    fn answer(&mut self, progress: &Progress, _: Option<u64>) -> Result<Option<Told>, OracleError> {
        let Some((manner, text)) = progress.due() else {
            return Ok(None);
        };
        manner.put(self.0, text).map(Some)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.0.limit_time(learned);
    }

    fn record(&mut self, _: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        // Whatever this oracle has examined was handed over.
        Ok(None)
    }

    fn strays(&mut self) -> Vec<Slip> {
        Vec::new()
    }

    fn finish(&mut self) -> u64 {
        0
    }
}

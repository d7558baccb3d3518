//! The trait that all ways of execution share.

use super::{ExecError, Freshness, Run, TimeLimit, Way};

/// A started target: feeds one input at a time and says how each run ended.
///
/// An executor recovers by itself from whatever the target does (a dead server is started
/// again); an `Err` means that the target cannot be run any more.
pub trait Executor: Send {
    /// Runs the target once on `input`.
    ///
    /// # Errors
    /// When the target, or the server that runs it, cannot be started or answers nonsense.
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError>;

    /// The way in which this executor runs its target.
    fn way(&self) -> Way;

    /// Whether runs may share a process.
    fn freshness(&self) -> Freshness;

    /// How often each instrumented place of the target was passed in the last run: the compiler's
    /// counters (modulo 256), of their real number; `None` where the way or the target has none.
    fn coverage(&mut self) -> Option<&[u8]> {
        None
    }

    /// Limits the time of all runs from here on. An executor without limits does nothing.
    fn limit_time(&mut self, _time: TimeLimit) {}
}

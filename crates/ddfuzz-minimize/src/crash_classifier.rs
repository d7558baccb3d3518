//! How crashes are classified while an input is minimized: the trait [`CrashClassifier`].

use ddfuzz_exec::{Ended, ExecError, TimeLimit};
use ddfuzz_triage::{Crash, Quick, Triager, Verdict};
use std::time::Duration;

/// Classifies a crashing input: runs it again under a tracer and computes the keys of its crash.
pub trait CrashClassifier: Send {
    /// Runs `input` once under a tracer. Returns the class and keys of its crash, without the other
    /// facts of a crash record, which take longer to find. If the run does not crash, returns how
    /// it ended.
    ///
    /// # Errors
    /// If the target cannot be run under a tracer.
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError>;

    /// Runs `input` under a tracer, within the time limit `time`. Returns the same as
    /// [`key`](CrashClassifier::key), together with the CPU time of the run. `None`, without a run,
    /// if a traced run of the target takes much longer than an untraced one; always `None` by
    /// default.
    ///
    /// # Errors
    /// If the target cannot be run under a tracer.
    fn key_within(
        &mut self,
        _input: &[u8],
        _time: TimeLimit,
    ) -> Result<Option<(Quick, Duration)>, ExecError> {
        Ok(None)
    }

    /// Runs `input`, which has crashed in an ordinary run but in none under a tracer, several times
    /// without a tracer. Returns the class and keys of its crash; `None` if one of these runs does
    /// not crash, or if none is made. By default, makes no run.
    ///
    /// # Errors
    /// If the target cannot be run.
    fn key_untraced(&mut self, _input: &[u8]) -> Result<Option<Quick>, ExecError> {
        Ok(None)
    }

    /// Returns true if a run that ended as `ended` has crashed or may have crashed, as after the
    /// exit status of a Rust panic. [`key`](CrashClassifier::key) then decides, by a traced run and
    /// the messages that this run prints. `crash_exit` is the exit status that counts as a crash;
    /// `None` if no exit status does.
    fn suspects(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        ended.is_suspect(crash_exit)
    }

    /// Runs `input` under a tracer, and returns the complete record of its crash; `None` if `input`
    /// does not crash in these runs.
    ///
    /// # Errors
    /// If the target cannot be run under a tracer.
    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError>;
}

impl CrashClassifier for Triager {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        Triager::key(self, input)
    }

    fn key_within(
        &mut self,
        input: &[u8],
        time: TimeLimit,
    ) -> Result<Option<(Quick, Duration)>, ExecError> {
        Triager::key_within(self, input, time)
    }

    fn key_untraced(&mut self, input: &[u8]) -> Result<Option<Quick>, ExecError> {
        Triager::key_untraced(self, input)
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

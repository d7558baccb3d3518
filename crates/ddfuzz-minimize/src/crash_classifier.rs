//! How crashes are classified while an input is minimized: the trait [`CrashClassifier`].

use ddfuzz_exec::{Ended, ExecError, TimeLimit};
use ddfuzz_triage::{Crash, Quick, Triager, Verdict};
use std::time::Duration;

/// Classifies a crashing input: runs it again under a tracer and computes the keys of its crash.
pub trait CrashClassifier: Send {
    /// Runs `input` under a tracer and computes only the class and keys of its crash, as fast as
    /// possible; returns how the run ended if it did not crash.
    ///
    /// # Errors
    /// If the target cannot be run under a tracer.
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError>;

    /// Runs `input` under a tracer, within the limits `time`. Returns the class and keys of its
    /// crash, as [`key`](CrashClassifier::key) does, and the CPU time of the run. `None`, without a
    /// run, if traced runs of the target take much longer than ordinary ones.
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

    /// Runs `input` without a tracer, several times, after it has crashed but did not crash under a
    /// tracer. Returns the class and keys of its crash; `None` if one of these runs does not crash.
    /// By default, makes no run and returns `None`.
    ///
    /// # Errors
    /// If the target cannot be run.
    fn key_untraced(&mut self, _input: &[u8]) -> Result<Option<Quick>, ExecError> {
        Ok(None)
    }

    /// Returns true if a run may have crashed although the way in which it `ended` does not show
    /// it; a traced run ([`key`](CrashClassifier::key)) and its output then decide. `crash_exit` is
    /// an exit status that counts as a crash.
    fn suspects(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        ended.is_suspect(crash_exit)
    }

    /// Runs `input` under a tracer, and returns the whole record of its crash; `None` if the crash
    /// did not occur again.
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

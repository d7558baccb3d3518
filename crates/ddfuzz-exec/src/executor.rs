//! The trait that all ways of execution implement, its errors, and the limits that may change while
//! a target runs.

use ddfuzz_delta::Comparison;
use std::path::{Path, PathBuf};
use std::{collections::HashSet, io, sync::Arc, time::Duration};

use crate::{
    CoverageReporting, CrashSnapshots, Freshness, Limits, Run, RunCoverage, Signature, Stuck, Way,
};

/// A started target: feeds one input at a time and says how each run ended.
///
/// An executor recovers by itself from whatever the target does (a dead server is started
/// again); an `Err` means that the target cannot be run any more.
pub trait Executor: Send {
    /// Runs the target once on `input`. Fails when the target, or the server that runs it, cannot
    /// be started or breaks its protocol.
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError>;

    /// The way in which this executor runs its target.
    fn way(&self) -> Way;

    /// Whether each run has a new process or runs may share one.
    fn freshness(&self) -> Freshness;

    /// Runs the target on the first of `inputs` and on as many of the next ones as the way takes at
    /// once. Stops after the first run that does not return normally. Returns one `Run` per input
    /// that was run, at least one unless `inputs` is empty. Fails as [`run`](Executor::run) does.
    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        match inputs.first() {
            Some(input) => Ok(vec![self.run(input)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Ends the process after the runs of the next call, so that later runs start in a new process.
    /// Does nothing where each run has its own process.
    fn end_process(&mut self) {}

    /// Number of coverage counters in the target; `None` where runs do not report coverage.
    fn places(&self) -> Option<usize> {
        None
    }

    /// Selects the runs whose coverage [`covered`](Executor::covered) reports from now on. Has no
    /// effect without coverage.
    fn report_coverage(&mut self, _reporting: CoverageReporting) {}

    /// Coverage of the runs of the last call, in order, without the runs that died.
    fn covered(&self) -> &[RunCoverage] {
        &[]
    }

    /// Sets whether [`compared`](Executor::compared) reports comparisons from now on. Only a
    /// harness that runs many inputs in one process supports this; it then takes one input at a
    /// time. All other targets use [`observe`](crate::observe). Fails when memory cannot be shared.
    fn report_comparisons(&mut self, _on: bool) -> Result<(), ExecError> {
        Ok(())
    }

    /// Comparisons of the last run whose operands differed, oldest first: at most 256, each pair of
    /// operands once, each operand of at most 64 bytes.
    fn compared(&mut self) -> Vec<Comparison> {
        Vec::new()
    }

    /// Coverage counters of the last run: how often each instrumented place was passed (modulo
    /// 256). `None` if they were not reported.
    fn coverage(&mut self) -> Option<&[u8]> {
        self.covered().last().map(|last| &last.counters[..])
    }

    /// Inputs that ran before the last one in the same process, oldest first: at most 32, each of
    /// at most 64 KiB. Empty where each run has its own process.
    fn preceding(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Snapshots that the process of the last run took of itself when it crashed. Only a process
    /// shared by several runs takes them, because its crash may not be reproducible. `None` without
    /// snapshots.
    fn copies(&self) -> Option<Arc<CrashSnapshots>> {
        None
    }

    /// Sets the time limit of all later runs. An executor without limits ignores it.
    fn limit_time(&mut self, _time: TimeLimit) {}

    /// Starts hang detection: observes long runs in windows of `window` CPU time, and stops runs
    /// early whose signature is in `known`. Such runs end by [`Ended::Timeout`];
    /// [`stuck`](Executor::stuck) distinguishes them from runs over their limits. Has no effect
    /// without coverage.
    ///
    /// [`Ended::Timeout`]: crate::Ended::Timeout
    fn recognise(&mut self, _window: Duration, _known: &HashSet<Signature>) {}

    /// Observations of hang detection about the last run, if the run timed out. The signature is
    /// `None` if the run could not be observed.
    fn stuck(&mut self) -> Stuck {
        Stuck::default()
    }
}

/// Why a target could not be started or served.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The program does not exist.
    #[error("there is no program {}", path.display())]
    Missing {
        /// The path, or the name that was looked for in PATH.
        path: PathBuf,
    },
    /// The program is there but cannot be executed.
    #[error("{} cannot be executed: {why}", path.display())]
    NotExecutable {
        /// Path of the program that cannot be executed.
        path: PathBuf,
        /// Why the program cannot be executed.
        why: String,
    },
    /// No bundled target has this name.
    #[error("no target named {name:?} comes with ddfuzz; there are: {known}")]
    UnknownBundled {
        /// The name that the user gave.
        name: String,
        /// Names of all bundled targets, for the message.
        known: String,
    },
    /// ddfuzz runs as root, and the user nobody, as whom it runs targets, cannot access the program
    /// or its directory. A sandboxed target never runs as root.
    #[error("the user nobody cannot access {}, and as root ddfuzz runs sandboxed programs as nobody only", path.display())]
    RootOnly {
        /// The first path that the user nobody cannot access.
        path: PathBuf,
    },
    /// This way of execution does not work for this target.
    #[error("--exec {way} does not work for {}: {why}", path.display())]
    WayUnfit {
        /// Name of the way of execution.
        way: &'static str,
        /// Path of the program.
        path: PathBuf,
        /// Why the way does not work.
        why: String,
    },
    /// A fork server stopped answering, or broke the protocol.
    #[error("the fork server of {} failed: {why}", path.display())]
    Server {
        /// Path of the program behind the server.
        path: PathBuf,
        /// Why the server failed.
        why: String,
    },
    /// The operating system refused something that running targets needs.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed, for the message.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
}

impl ExecError {
    /// Returns a function that makes an [`ExecError::System`] for the operation `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ExecError {
        let what = what.into();
        |source| ExecError::System { what, source }
    }

    /// Makes an [`ExecError::WayUnfit`] for the program at `path`.
    pub(crate) fn unfit(way: Way, path: &Path, why: impl Into<String>) -> ExecError {
        ExecError::WayUnfit {
            way: way.name(),
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

/// Limits on the time of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// CPU time of the run's process tree.
    pub cpu: Duration,
    /// Wall time, a larger limit that stops sleeping runs.
    pub wall: Duration,
}

impl TimeLimit {
    /// Both limits, multiplied by `factor`.
    pub fn times(self, factor: u32) -> TimeLimit {
        TimeLimit {
            cpu: self.cpu.saturating_mul(factor),
            wall: self.wall.saturating_mul(factor),
        }
    }

    /// Returns `limits` with these time limits.
    pub fn within(self, limits: Limits) -> Limits {
        Limits {
            cpu: self.cpu,
            wall: self.wall,
            ..limits
        }
    }
}

impl From<Limits> for TimeLimit {
    fn from(limits: Limits) -> TimeLimit {
        TimeLimit {
            cpu: limits.cpu,
            wall: limits.wall,
        }
    }
}

/// An executor without processes for tests: a closure computes its runs.
pub struct Mock<F> {
    script: F,
    /// Number of runs that the mock has made.
    pub runs: u64,
}

impl<F: FnMut(&[u8]) -> Run + Send> Mock<F> {
    /// Makes a mock that answers each input with `script`.
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

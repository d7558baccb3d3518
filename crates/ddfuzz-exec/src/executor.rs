//! The trait that all ways of execution implement, its errors, and the limits that may change while
//! a target runs.

use ddfuzz_delta::Comparison;
use std::path::{Path, PathBuf};
use std::{collections::HashSet, io, sync::Arc, time::Duration};

use crate::{
    CoverageReporting, CoveredCode, CrashSnapshots, Freshness, Limits, RefusalReason, Run,
    RunCoverage, Signature, Stuck, Way, Written,
};

/// Runs a started target on one input at a time and reports how each run ended.
///
/// An executor recovers by itself from whatever the target does (a dead server is started
/// again); an `Err` means that the target cannot be run any more.
pub trait Executor: Send {
    /// Runs the target once on `input`, and returns how the run ended. Fails when the target, or
    /// the server that runs it, cannot be started or breaks its protocol.
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError>;

    /// Runs the target once on `input` in a new process, and returns the run; `None`, without a
    /// run, if this executor can only use a shared process. Fails as [`run`](Executor::run) does.
    fn run_fresh(&mut self, input: &[u8]) -> Result<Option<Run>, ExecError> {
        let runs = self.run_fresh_some(&[input])?;
        Ok(runs.and_then(|runs| runs.last().copied()))
    }

    /// Runs the target as [`run_some`](Executor::run_some) does, but each input in a new process.
    /// Makes no run and returns `None` if this executor can only use a shared process. Fails as
    /// [`run`](Executor::run) does.
    fn run_fresh_some(&mut self, inputs: &[&[u8]]) -> Result<Option<Vec<Run>>, ExecError> {
        match self.freshness() {
            Freshness::Fresh => self.run_some(inputs).map(Some),
            Freshness::Shared => Ok(None),
        }
    }

    /// Returns the method of execution (such as fork server or in-process harness) of this
    /// executor.
    fn way(&self) -> Way;

    /// Returns whether each run has a new process or several runs may share one.
    fn freshness(&self) -> Freshness;

    /// Runs the target on the first of `inputs` and on as many of the next ones as it takes at
    /// once, up to the first run that does not return normally. Returns one `Run` per input that
    /// was run, at least one unless `inputs` is empty. Fails as [`run`](Executor::run) does.
    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        match inputs.first() {
            Some(input) => Ok(vec![self.run(input)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Requests that the target's process ends after the runs of the next call of this executor, so
    /// that later runs start in a new process. Does nothing where each run has its own process.
    fn end_process(&mut self) {}

    /// Returns how many coverage counters this executor reports for a run: those of the target, or
    /// one for each basic block after [`cover_blocks`](Executor::cover_blocks). `None` for a target
    /// without either.
    fn counter_count(&self) -> Option<usize> {
        None
    }

    /// Lets later runs report which basic blocks of an unmodified program they reach, each block as
    /// a coverage counter of value 1 (docs/decisions/0191). Only the methods of execution `inject`
    /// and `snapshot` support this, on x86-64. Returns the number of blocks, or why runs report
    /// none. Changes nothing for a target with coverage counters of its own, whose number is
    /// returned. Fails when the target cannot be started again.
    fn cover_blocks(&mut self) -> Result<Result<usize, NotCovered>, ExecError> {
        Ok(self.counter_count().ok_or("it has no coverage counters"))
    }

    /// Returns the files and functions whose basic blocks are covered by later runs; `None` unless
    /// [`cover_blocks`](Executor::cover_blocks) has succeeded.
    fn code(&self) -> Option<CoveredCode> {
        None
    }

    /// Selects which later runs report their coverage to [`covered`](Executor::covered): none, all,
    /// or those with new coverage. Has no effect on a target without coverage counters.
    fn report_coverage(&mut self, _reporting: CoverageReporting) {}

    /// Returns the coverage of the runs that the last call of this executor made, in order, without
    /// runs that did not return normally or were not selected.
    fn covered(&self) -> &[RunCoverage] {
        &[]
    }

    /// Switches on or off that [`compared`](Executor::compared) reports the comparisons of later
    /// runs. Only a harness that runs many inputs in one process supports this; it then takes one
    /// input at a time. All other targets use [`observe`](crate::observe). Fails when memory cannot
    /// be shared.
    fn report_comparisons(&mut self, _on: bool) -> Result<(), ExecError> {
        Ok(())
    }

    /// Returns the comparisons whose operands differed in the target's last run, oldest first: at
    /// most 256, each pair of operands once, each operand cut to its first 64 bytes.
    fn compared(&mut self) -> Vec<Comparison> {
        Vec::new()
    }

    /// Returns the coverage counters of the last run: how often each instrumented code location was
    /// passed (modulo 256). `None` if they were not reported.
    fn coverage(&mut self) -> Option<&[u8]> {
        self.covered().last().map(|last| &last.counters[..])
    }

    /// Sets whether later runs report length and hash of their output to
    /// [`written`](Executor::written). Only the method of execution `snapshot` supports this; while
    /// it is on, the executor takes one input at a time, compares no run with one in a new process
    /// and does not look for crashes of descendants. Fails when the output cannot be captured.
    fn report_output(&mut self, _on: bool) -> Result<(), ExecError> {
        Ok(())
    }

    /// Returns length and hash of what the last run wrote to stdout and of what it wrote to stderr;
    /// `None` if this executor does not report that.
    fn written(&self) -> Option<[Written; 2]> {
        None
    }

    /// Returns the reasons for which the process that runs many inputs could not make a run, each
    /// with the number of such runs. A new process has made these runs instead. Empty for methods
    /// of execution without such a process.
    fn refusals(&self) -> Vec<(RefusalReason, u64)> {
        Vec::new()
    }

    /// Returns earlier runs whose reported results were wrong, each once, with its input and the
    /// right result. These runs come from a process that runs many inputs, which was found to run
    /// an input differently from a new process and is no longer used. Empty for methods of
    /// execution other than `snapshot`.
    fn corrected(&mut self) -> Vec<(Vec<u8>, Run)> {
        Vec::new()
    }

    /// Compares a recent run with one in a new process now, instead of at the next regular check.
    /// Then [`corrected`](Executor::corrected) returns all wrong results up to now. Does nothing
    /// for an executor that makes no such checks. Fails as [`run`](Executor::run) does.
    fn check_now(&mut self) -> Result<(), ExecError> {
        Ok(())
    }

    /// Returns inputs that ran before the last one in the same process, oldest first: at most 32,
    /// and only those after the last input of more than 64 KiB. Empty where each run has its own
    /// process.
    fn preceding(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Returns the snapshots that the target's process took of itself when it crashed in the last
    /// run; `None` without snapshots. Only a process shared by several runs takes them, because its
    /// crash may not be reproducible.
    fn crash_snapshots(&self) -> Option<Arc<CrashSnapshots>> {
        None
    }

    /// Sets the time limit of all later runs. Does nothing for an executor without limits.
    fn limit_time(&mut self, _time: TimeLimit) {}

    /// Starts hang detection: observes long runs in windows of `window` CPU time each, and stops a
    /// run early if the signature of a window (hash of the code that the run passes in it) is in
    /// `known`, the signatures of known hangs. Such runs end by [`Ended::Timeout`];
    /// [`stuck`](Executor::stuck) distinguishes them from runs over their limits. Has no effect
    /// without coverage.
    ///
    /// [`Ended::Timeout`]: crate::Ended::Timeout
    fn recognise(&mut self, _window: Duration, _known: &HashSet<Signature>) {}

    /// Returns what hang detection observed of the last run, if the run timed out. The result has
    /// no signatures (hashes of the code in which the run looped) if the run could not be observed.
    fn stuck(&mut self) -> Stuck {
        Stuck::default()
    }
}

/// Why the blocks of a program cannot be covered, worded to follow the program's name in a message:
/// `it has no coverage counters`.
pub type NotCovered = &'static str;

/// Why a program cannot be executed, worded to follow `cannot be executed:` in a message. The
/// reasons that have a remedy of their own are distinguished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotExecuted {
    /// The dynamic loader does not find a shared library, or a symbol in one; holds its message.
    #[error("{0}")]
    Library(String),
    /// The first line of a script ends with a carriage return, which is taken as the last character
    /// of the interpreter's name.
    #[error(
        "the interpreter in its first line, {0:?}, does not exist: the line ends with a carriage return"
    )]
    CarriageReturn(String),
    /// The interpreter that the first line of a script names by a relative path does not exist in
    /// the directory in which the program runs.
    #[error("the interpreter in its first line, {0:?}, does not exist where the program runs")]
    RelativeInterpreter(String),
    /// The program cannot be executed for a reason that no other variant stands for, such as
    /// missing permissions; holds the reason in words.
    #[error("{0}")]
    Other(String),
}

/// Why a target could not be started, or its fork server could not make a run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The target's program does not exist.
    #[error("there is no program {}", path.display())]
    Missing {
        /// Path of the program that does not exist, or the name that was looked for in PATH.
        path: PathBuf,
    },
    /// The target's program exists but cannot be executed.
    #[error("{} cannot be executed: {why}", path.display())]
    NotExecutable {
        /// Path of the program that cannot be executed.
        path: PathBuf,
        /// Why the program cannot be executed.
        why: NotExecuted,
    },
    /// The user named a bundled target that does not exist.
    #[error("no target named {name:?} comes with ddfuzz; there are: {known}")]
    UnknownBundled {
        /// The name that the user gave, which no bundled target has.
        name: String,
        /// Names of all bundled targets, which the error message lists.
        known: String,
    },
    /// ddfuzz runs as root, and the user nobody, as whom it runs targets, cannot access the program
    /// or its directory. A sandboxed target never runs as root.
    #[error("the user nobody cannot access {}, which {} needs, and as root ddfuzz runs sandboxed programs as nobody only", path.display(), if *is_cwd { "the working directory (--cwd)" } else { "the program" })]
    RootOnly {
        /// The first path that the user nobody cannot access: the program, its working directory,
        /// or a directory above one of them.
        path: PathBuf,
        /// True if `path` is the working directory or leads to it; false if `path` is the program
        /// or leads to it.
        is_cwd: bool,
    },
    /// The chosen method of execution does not work for this target.
    #[error("--exec {way} does not work for {}: {why}", path.display())]
    WayUnfit {
        /// Name of the method of execution, as `--exec` takes it.
        way: &'static str,
        /// Path of the program for which the method of execution does not work.
        path: PathBuf,
        /// Why the method of execution does not work for the target.
        why: String,
    },
    /// The server that makes the runs stopped answering, or broke its protocol.
    #[error("the server that runs {} failed: {why}", path.display())]
    Server {
        /// Path of the program that the server runs.
        path: PathBuf,
        /// How the server failed, in words for the error message.
        why: String,
    },
    /// ddfuzz abandoned the run before its end, or did not begin it, because a condition of the
    /// target's [`AbandonWhen`](crate::AbandonWhen) is met. The error says nothing about the input.
    #[error("the run was abandoned, because ddfuzz was to end")]
    Abandoned,
    /// The operating system refused something that running targets needs.
    #[error("{what}: {source}")]
    System {
        /// The operation that the operating system refused, in words for the error message.
        what: String,
        /// The error that the operating system returned for the refused operation.
        source: io::Error,
    },
}

impl ExecError {
    /// Returns a function that converts an I/O error to an [`ExecError::System`]. `what`: the
    /// operation that failed, in words for the error message.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ExecError {
        let what = what.into();
        |source| ExecError::System { what, source }
    }

    /// Returns `otherwise`; but the error if it says that the run was abandoned.
    pub(crate) fn unless_abandoned<T>(self, otherwise: T) -> Result<T, ExecError> {
        match self {
            ExecError::Abandoned => Err(self),
            _ => Ok(otherwise),
        }
    }

    /// Makes an [`ExecError::WayUnfit`]: the method of execution `way` does not work for the
    /// program at `path`.
    pub(crate) fn unfit(way: Way, path: &Path, why: impl Into<String>) -> ExecError {
        ExecError::WayUnfit {
            way: way.name(),
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

/// The limits on CPU time and wall time of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// Limit on the CPU time of all processes of a run together.
    pub cpu: Duration,
    /// Limit on the wall time of a run, larger than that on CPU time: it stops sleeping runs.
    pub wall: Duration,
}

impl TimeLimit {
    /// Smallest limit on CPU time that is learned from runs of a target: the kernel measures CPU
    /// time in steps of some milliseconds, so that a shorter limit would be inexact.
    pub const MIN_LEARNED: Duration = Duration::from_millis(50);

    /// Returns time limits for a target whose runs have taken the CPU time `cpu` until now: ten
    /// times as much CPU time, at least [`TimeLimit::MIN_LEARNED`], and the wall time that
    /// [`Limits::with_cpu`] sets for such a limit.
    pub fn learned(cpu: Duration) -> TimeLimit {
        Limits::with_cpu(cpu.saturating_mul(10).max(TimeLimit::MIN_LEARNED)).into()
    }

    /// Returns, of `self` and `most`, the smaller limit on CPU time and the smaller limit on wall
    /// time.
    pub fn at_most(self, most: TimeLimit) -> TimeLimit {
        TimeLimit {
            cpu: self.cpu.min(most.cpu),
            wall: self.wall.min(most.wall),
        }
    }

    /// Returns the limits on CPU time and wall time, both multiplied by `factor`.
    pub fn times(self, factor: u32) -> TimeLimit {
        TimeLimit {
            cpu: self.cpu.saturating_mul(factor),
            wall: self.wall.saturating_mul(factor),
        }
    }

    /// Returns `limits` with its limits on CPU time and wall time replaced by those of `self`.
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

/// An executor for tests, without processes: a closure decides how each run ends.
pub struct Mock<F> {
    script: F,
    /// Number of runs that this mock executor has made.
    pub runs: u64,
}

impl<F: FnMut(&[u8]) -> Run + Send> Mock<F> {
    /// Makes a mock executor whose runs end as `script` says for their input.
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

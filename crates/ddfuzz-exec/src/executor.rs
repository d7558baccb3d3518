//! The trait that all ways of execution implement, its errors, and the limits that may change while
//! a target runs.

use ddfuzz_delta::Comparison;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    CoverageReporting, CrashSnapshots, Freshness, Limits, Run, RunCoverage, Signature, Stuck, Way,
};

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

    /// Runs the target on the first of `inputs`, and on as many of the next ones as the way
    /// takes at once, up to the first that does not come back. Gives one run for each, and none
    /// only where there are no inputs.
    ///
    /// # Errors
    /// As [`run`](Executor::run).
    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        match inputs.first() {
            Some(input) => Ok(vec![self.run(input)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Ends the process after the runs of the next call, so that later runs have a new one and do
    /// not depend on earlier runs. Does nothing where each run has its own process.
    fn end_process(&mut self) {}

    /// How many places of the target its compiler counts; `None` where runs tell no coverage.
    fn places(&self) -> Option<usize> {
        None
    }

    /// Sets of which runs [`covered`](Executor::covered) reports coverage from here on. A way or a
    /// target without coverage reports none.
    fn tell_coverage(&mut self, _telling: CoverageReporting) {}

    /// The coverage of the runs of the last call, in their order, except of those that died.
    fn covered(&self) -> &[RunCoverage] {
        &[]
    }

    /// Sets whether [`compared`](Executor::compared) reports comparisons from here on. Only a harness
    /// that runs many inputs in one process can; it then takes one at a time. For all others there
    /// is [`observe`](crate::observe).
    ///
    /// # Errors
    /// When memory cannot be shared.
    fn tell_comparisons(&mut self, _on: bool) -> Result<(), ExecError> {
        Ok(())
    }

    /// What the last run compared: the last comparisons (at most 256, each pair of operands once)
    /// whose operands differed, oldest first, each operand of at most 64 bytes.
    fn compared(&mut self) -> Vec<Comparison> {
        Vec::new()
    }

    /// How often the last run passed each instrumented place: the compiler's counters (modulo 256).
    /// `None` where they were not reported.
    fn coverage(&mut self) -> Option<&[u8]> {
        self.covered().last().map(|last| &last.counters[..])
    }

    /// The inputs that the process of the last run may have run before it, oldest first: the last
    /// few (at most 32, none longer than 64 KiB). Empty where each run has its own process.
    fn preceding(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The snapshots that the process of the last run left of itself, if it was shared with earlier
    /// runs and has died: a crash may not come again. `None` where there can be none.
    fn copies(&self) -> Option<Arc<CrashSnapshots>> {
        None
    }

    /// Sets the time limit of all runs from here on. An executor without limits does nothing.
    fn limit_time(&mut self, _time: TimeLimit) {}

    /// From here on observes runs that take long, in windows of this CPU time, and stops early those
    /// that have one of the signatures `known`. They end by [`Ended::Timeout`];
    /// [`stuck`](Executor::stuck) tells them from runs over their limits. A way or a target without
    /// coverage does nothing.
    ///
    /// [`Ended::Timeout`]: crate::Ended::Timeout
    fn recognise(&mut self, _window: Duration, _known: &HashSet<Signature>) {}

    /// What was observed of the last run of the last call, where it ended by a timeout. It has no
    /// signature where the run could not be observed.
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
        /// The path, or the name looked for in PATH.
        path: PathBuf,
    },
    /// The program is there but cannot be executed.
    #[error("{} cannot be executed: {why}", path.display())]
    NotExecutable {
        /// The program.
        path: PathBuf,
        /// What stands in the way.
        why: String,
    },
    /// No bundled target has this name.
    #[error("no target named {name:?} comes with ddfuzz; there are: {known}")]
    UnknownBundled {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The user whom root gives targets to cannot reach the program or its directory, and a target
    /// in a sandbox never runs as root.
    #[error("the user nobody cannot access {}, and as root ddfuzz runs sandboxed programs as nobody only", path.display())]
    RootOnly {
        /// The first path on the way that is closed.
        path: PathBuf,
    },
    /// This way of execution does not work for this target.
    #[error("--exec {way} does not work for {}: {why}", path.display())]
    WayUnfit {
        /// The way's name.
        way: &'static str,
        /// The program.
        path: PathBuf,
        /// What stands in the way.
        why: String,
    },
    /// A server stopped answering, or answered something that is not of the protocol.
    #[error("the fork server of {} failed: {why}", path.display())]
    Server {
        /// The program served.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// The system refused something that running targets needs.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl ExecError {
    /// Makes errors of the system, which happened while doing `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ExecError {
        let what = what.into();
        |source| ExecError::System { what, source }
    }

    /// The error that `way` does not work for the program at `path`.
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
    /// Wall time, which only catches sleepers.
    pub wall: Duration,
}

impl TimeLimit {
    /// So many times as long.
    pub fn times(self, factor: u32) -> TimeLimit {
        TimeLimit {
            cpu: self.cpu.saturating_mul(factor),
            wall: self.wall.saturating_mul(factor),
        }
    }

    /// Limits with these times in place of their own.
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

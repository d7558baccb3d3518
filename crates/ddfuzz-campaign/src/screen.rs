//! What a campaign shows to the user while it runs: its phase, its progress, and the groups that it
//! finds.

use std::time::Duration;

use serde::Serialize;

use ddfuzz_store::report::{GroupView, size};

/// What a campaign is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "phase")]
pub enum Phase {
    /// The campaign fuzzes.
    #[default]
    Fuzzing,
    /// Fuzzing is over; the campaign determines where in the program hangs are.
    Naming {
        /// Number of hangs whose position in the program is still to be determined.
        left: u64,
    },
    /// Fuzzing is over, or paused for a minimization; entries are minimized.
    Minimizing {
        /// Number of entries whose minimization has ended since fuzzing ended.
        done: u64,
        /// Number of all entries to minimize, including those whose minimization has ended.
        of: u64,
        /// Time limit for the minimization of each entry, in milliseconds; `None` means no limit.
        each_ms: Option<u64>,
    },
}

impl Phase {
    /// Returns the phase in which `done` entries are minimized, `left` are not yet, and each may
    /// take the time `budget`.
    pub(crate) fn minimizing(done: u64, left: u64, budget: Option<Duration>) -> Phase {
        Phase::Minimizing {
            done,
            of: done + left,
            each_ms: budget.map(|budget| budget.as_millis() as u64),
        }
    }

    /// Returns a description of the phase for the user; `None` while the campaign fuzzes.
    pub fn text(&self) -> Option<String> {
        match self {
            Phase::Fuzzing => None,
            Phase::Naming { left } => {
                let hangs = size::counted(*left, "hang");
                Some(format!("fuzzing is over; finding out where {hangs} are"))
            }
            Phase::Minimizing { done, of, each_ms } => {
                let each = each_ms.map_or(String::new(), |ms| {
                    format!(", at most {} s each", ms.div_ceil(1000))
                });
                let at = (done + 1).min(*of);
                Some(format!("fuzzing is over; minimizing {at} of {of}{each}"))
            }
        }
    }

    /// Returns the name of the phase in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Phase::Fuzzing => "fuzzing",
            Phase::Naming { .. } => "naming",
            Phase::Minimizing { .. } => "minimizing",
        }
    }
}

/// Progress of a campaign at one moment; also a line of `stats.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// What the campaign is doing.
    #[serde(flatten)]
    pub phase: Phase,
    /// Milliseconds since this call began to fuzz.
    pub time_ms: u64,
    /// Number of committed runs that count for `--runs`; several calls of ddfuzz may share this
    /// count.
    pub runs: u64,
    /// Number of runs that this call has committed per second of its fuzzing time.
    pub runs_per_s: f64,
    /// Number of inputs in the corpus of a guided campaign; 0 in others.
    pub corpus: u64,
    /// Number of groups of crashes that the campaign has found.
    pub groups: u64,
    /// Number of runs that crashed.
    pub crashes: u64,
    /// Number of runs that exceeded their time limit.
    pub hangs: u64,
    /// Number of runs that exceeded their memory limit.
    pub ooms: u64,
    /// Number of groups waiting to be minimized or being minimized.
    pub minimizing: u64,
    /// Largest number of edges that the runs of one worker have reached; `None` if the target
    /// reports no coverage.
    pub edges: Option<u64>,
    /// Number of all edges of the target; `None` if it reports no coverage.
    pub edges_of: Option<u64>,
    /// Share of the reached edges that are reached again when an input is run again, from 0 to 1;
    /// `None` without coverage.
    pub stability: Option<f64>,
    /// Share of the workers' time spent on minimization, from 0 to 1.
    pub minimizer_share: f64,
}

impl Progress {
    /// Returns the number of runs per second when `runs` take `time`.
    pub(super) fn rate(runs: u64, time: Duration) -> f64 {
        runs as f64 / time.as_secs_f64().max(0.001)
    }

    /// Returns a copy of this progress with `time` as the time since the call began.
    pub(super) fn at(&self, time: Duration) -> Progress {
        Progress {
            time_ms: time.as_millis() as u64,
            ..*self
        }
    }
}

/// Shows the progress of a job to the user: of a campaign ([`Progress`]), or of another job whose
/// progress has the type `P`. All methods are called from one thread at a time.
pub trait Screen<P = Progress>: Send {
    /// Shows the progress; called several times a second.
    fn progress(&mut self, progress: &P);

    /// Shows a group that is new, or whose reproducer has become smaller.
    fn group(&mut self, _: &GroupView) {}

    /// Shows a group whose minimization has ended.
    fn minimized(&mut self, _: &GroupView) {}

    /// Shows a message of one line to the user.
    fn note(&mut self, text: &str);
}

/// A screen that shows nothing.
pub struct Silent;

impl<P> Screen<P> for Silent {
    fn progress(&mut self, _: &P) {}
    fn note(&mut self, _: &str) {}
}

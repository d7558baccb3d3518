//! What a campaign shows to the user while it runs: its phase, its progress, and the groups that it
//! finds.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use ddfuzz_store::Kind;
use ddfuzz_store::report::{GroupView, size};

/// The phase of a campaign that the user sees: fuzzing, locating hangs, or minimizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "phase")]
pub enum Phase {
    /// The campaign is fuzzing.
    #[default]
    Fuzzing,
    /// Fuzzing is over, and the campaign determines at which position in the program its suspected
    /// hangs are.
    Naming {
        /// Number of suspected hangs whose position in the program is still to be determined.
        left: u64,
    },
    /// The campaign minimizes entries (stored failing inputs): after fuzzing, or while fuzzing
    /// pauses.
    Minimizing {
        /// Number of entries (stored failing inputs) whose minimization has ended since fuzzing
        /// ended.
        done: u64,
        /// Number of all entries (stored failing inputs) to minimize: those whose minimization has
        /// ended, and those still to be minimized.
        of: u64,
        /// Time limit for the minimization of each entry, in milliseconds; `None` means no limit.
        each_ms: Option<u64>,
    },
}

impl Phase {
    /// Returns the phase of minimizing, in which `done` entries are minimized, `left` are still to
    /// be minimized, and each may take the time `budget` (`None`: no limit).
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

    /// Returns the name of the phase for JSON: `fuzzing`, `naming` or `minimizing`.
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
    /// Whether the campaign is fuzzing, locating hangs, or minimizing.
    #[serde(flatten)]
    pub phase: Phase,
    /// Milliseconds since this call of ddfuzz began to fuzz.
    pub time_ms: u64,
    /// Number of runs of the campaign, in all calls of ddfuzz together. A run that ddfuzz makes
    /// itself counts once its finding, if it has one, is stored.
    pub runs: u64,
    /// Number of runs that this call of ddfuzz has made and counted per second of its fuzzing time.
    pub runs_per_s: f64,
    /// Number of inputs in the corpus of a guided campaign; 0 in others.
    pub corpus: u64,
    /// Number of groups of crashes that the campaign has found, in all calls of ddfuzz together.
    pub groups: u64,
    /// Number of runs of the campaign, in all calls of ddfuzz together, that crashed.
    pub crashes: u64,
    /// Number of runs of the campaign, in all calls of ddfuzz together, that exceeded their time
    /// limit.
    pub hangs: u64,
    /// Number of runs of the campaign, in all calls of ddfuzz together, that exceeded their memory
    /// limit.
    pub ooms: u64,
    /// Number of groups of crashes that wait to be minimized or are being minimized.
    pub minimizing: u64,
    /// Largest number of the target's edges that the runs of a single worker have covered; `None`
    /// if the campaign is not guided, the target reports no coverage, or no worker has reported any
    /// yet.
    pub edges: Option<u64>,
    /// Number of all edges of the target; `None` in the same cases as `edges`.
    pub edges_of: Option<u64>,
    /// Fraction, from 0 to 1, of the covered edges that are covered again with the same counts when
    /// an input is run again; `None` without coverage.
    pub stability: Option<f64>,
    /// Fraction of the workers' time that was spent on minimization, from 0 to 1.
    pub minimizer_share: f64,
}

impl Progress {
    /// Returns the number of runs per second when `runs` take `time`.
    pub(super) fn rate(runs: u64, time: Duration) -> f64 {
        runs as f64 / time.as_secs_f64().max(0.001)
    }

    /// Returns a copy of this progress with `time` as the time since the call of ddfuzz began to
    /// fuzz.
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
    /// Shows the present progress of the job to the user; called several times a second.
    fn progress(&mut self, progress: &P);

    /// Shows the user how many runs of the campaign have ended in each group. The parameter has
    /// these numbers by the kind of the group and its major key (12 hex digits). Called before
    /// [`progress`](Screen::progress), whose numbers of crashes, hangs and runs over the memory
    /// limit are sums of these numbers.
    fn seen(&mut self, _: &BTreeMap<Kind, BTreeMap<String, u64>>) {}

    /// Shows the user a group of crashes that is new, or whose reproducer has become smaller.
    fn group(&mut self, _: &GroupView) {}

    /// Shows the user a group of crashes whose minimization has ended.
    fn minimized(&mut self, _: &GroupView) {}

    /// Shows a message of one line to the user.
    fn note(&mut self, text: &str);
}

/// A [`Screen`] that shows nothing to the user.
pub struct Silent;

impl<P> Screen<P> for Silent {
    fn progress(&mut self, _: &P) {}
    fn note(&mut self, _: &str) {}
}

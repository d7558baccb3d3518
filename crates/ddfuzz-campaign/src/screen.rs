//! What a campaign shows while it runs.

use std::time::Duration;

use serde::Serialize;

use ddfuzz_store::report::{GroupView, size};

/// What a campaign does at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "phase")]
pub enum Phase {
    /// It fuzzes.
    #[default]
    Fuzzing,
    /// The fuzzing is over: it finds out where runs hang.
    Naming {
        /// How many of them there are still.
        left: u64,
    },
    /// The fuzzing is over, or paused: groups are minimized.
    Minimizing {
        /// How many of them are done.
        done: u64,
        /// How many there are.
        of: u64,
        /// How long each may take, in milliseconds; `None` where nothing bounds it.
        each_ms: Option<u64>,
    },
}

impl Phase {
    /// What is said of it to people; nothing while it fuzzes.
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

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Phase::Fuzzing => "fuzzing",
            Phase::Naming { .. } => "naming",
            Phase::Minimizing { .. } => "minimizing",
        }
    }
}

/// A campaign's progress at one moment; a line of `stats.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// The phase of the campaign.
    #[serde(flatten)]
    pub phase: Phase,
    /// Milliseconds since this call began to fuzz.
    pub time_ms: u64,
    /// Runs committed in this count.
    pub runs: u64,
    /// Runs committed per second of this call.
    pub runs_per_s: f64,
    /// Inputs in the corpus.
    pub corpus: u64,
    /// Groups of crashes.
    pub groups: u64,
    /// Runs that crashed.
    pub crashes: u64,
    /// Runs over their time limit.
    pub hangs: u64,
    /// Runs over their memory limit.
    pub ooms: u64,
    /// Groups waiting to be minimized, the one under way included.
    pub minimizing: u64,
    /// Places of the target that runs have reached, of those that its compiler counts; `None`
    /// where the target reports no coverage.
    pub edges: Option<u64>,
    /// How many there are.
    pub edges_of: Option<u64>,
    /// Of what was reached, the share that repeats when its input is run again, from 0 to 1.
    pub stability: Option<f64>,
    /// The share of the workers' time that minimizing has taken, from 0 to 1.
    pub minimizer_share: f64,
}

impl Progress {
    /// The rate of `runs` in `time`.
    pub(super) fn rate(runs: u64, time: Duration) -> f64 {
        runs as f64 / time.as_secs_f64().max(0.001)
    }

    /// The same course at a later time.
    pub(super) fn later(&self, time: Duration) -> Progress {
        Progress {
            time_ms: time.as_millis() as u64,
            ..*self
        }
    }
}

/// Where a campaign shows its progress. Called from one thread.
pub trait Screen {
    /// The course, several times a second.
    fn progress(&mut self, progress: &Progress);

    /// A group is new, or its reproducer has become smaller.
    fn group(&mut self, _: &GroupView) {}

    /// The minimization of a group has ended.
    fn minimized(&mut self, group: &GroupView);

    /// Something that the user should know.
    fn note(&mut self, text: &str);
}

/// A screen that shows nothing.
pub struct Silent;

impl Screen for Silent {
    fn progress(&mut self, _: &Progress) {}
    fn minimized(&mut self, _: &GroupView) {}
    fn note(&mut self, _: &str) {}
}

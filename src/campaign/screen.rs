//! What a campaign shows while it runs.

use std::time::Duration;

use serde::Serialize;

use crate::report::GroupView;

/// A campaign's course at one moment; a line of `stats.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
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
    /// where the target tells no coverage.
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

    /// The same course at a later time, `runs` being those of this call.
    pub(super) fn later(&self, runs: u64, time: Duration) -> Progress {
        Progress {
            time_ms: time.as_millis() as u64,
            runs_per_s: Progress::rate(runs, time),
            ..*self
        }
    }
}

/// Where a campaign shows its course. Called from one thread.
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

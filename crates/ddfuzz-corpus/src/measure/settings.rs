//! What measuring is told.

use std::sync::atomic::{AtomicBool, Ordering};

use super::runner::Runners;
use ddfuzz_exec::{Freshness, Target, Way};

/// What is run, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The target. Its limits are those that decide whether an input hangs.
    pub target: &'a Target,
    /// How it is run.
    pub way: Way,
    /// Workers; at least one works. No result depends on their number.
    pub jobs: usize,
    /// Longer files are not read, in bytes.
    pub max_len: u64,
    /// Whether runs are first held to a limit on time that is learned from others. Nothing is
    /// called a hang by that one.
    pub learn_limit: bool,
    /// Whether runs may share a process, as far as the way lets them; in one of its own each run
    /// reaches the same whatever was run before.
    pub freshness: Freshness,
    /// Started targets, which workers take from there and give back; where there are none, each
    /// worker starts its own.
    pub runners: Option<&'a Runners>,
    /// When it turns true, what is under way is finished and nothing more begun.
    pub stop: &'a AtomicBool,
}

impl Settings<'_> {
    /// Whether nothing more is to be begun.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

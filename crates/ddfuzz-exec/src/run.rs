//! What is known of one run.

use std::time::Duration;

use super::Ended;

/// One run of a target on one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How it ended.
    pub ended: Ended,
    /// CPU time (user and system) of the run's process and its reaped children; of a run that was
    /// killed at a limit, of all its processes.
    pub cpu: Duration,
    /// Bytes of the input that the target read, where the way of execution can tell.
    pub read: Option<u64>,
}

impl Run {
    /// A run that ended so, with nothing else known.
    pub fn ended(ended: Ended) -> Run {
        Run {
            ended,
            cpu: Duration::ZERO,
            read: None,
        }
    }
}

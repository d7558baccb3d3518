//! The part of the limits that may change while a target runs.

use std::time::Duration;

use super::Limits;

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

//! How long runs may take before they are looked at alone.

use std::time::Duration;

use ddfuzz_exec::{Limits, TimeLimit};

/// How much longer than the mean run any other may take.
const FACTOR: u32 = 10;
/// The least limit in CPU time: the kernel counts it in steps of some milliseconds.
const LEAST: Duration = Duration::from_millis(50);
/// So many runs are learned from.
const ENOUGH: u32 = 64;

/// The limit that runs are first held to: a hang in a process of many runs costs a small part of
/// the full limit then, and the full one only once, alone. What is over it is no hang yet, so
/// that no result depends on it.
#[derive(Debug)]
pub(super) struct Patience {
    full: TimeLimit,
    first: TimeLimit,
    learns: bool,
    runs: u32,
    time: Duration,
}

impl Patience {
    pub(super) fn new(limits: Limits, learns: bool) -> Patience {
        Patience {
            full: limits.into(),
            first: limits.into(),
            learns,
            runs: 0,
            time: Duration::ZERO,
        }
    }

    /// A run that came back took so long.
    pub(super) fn see(&mut self, time: Duration) {
        if !self.learns || self.runs == ENOUGH {
            return;
        }
        self.runs += 1;
        self.time += time;
        if self.runs == ENOUGH {
            let mean = self.time / ENOUGH;
            self.hold_to(mean.saturating_mul(FACTOR).max(LEAST));
        }
    }

    /// A run that was over the first limit was within the full one: there may be more of them.
    pub(super) fn was_hasty(&mut self) {
        self.hold_to(self.first.cpu.saturating_mul(2));
    }

    fn hold_to(&mut self, cpu: Duration) {
        let limit = Limits::with_cpu(cpu);
        self.first = TimeLimit {
            cpu: self.full.cpu.min(limit.cpu),
            wall: self.full.wall.min(limit.wall),
        };
    }

    /// The limit that decides.
    pub(super) fn full(&self) -> TimeLimit {
        self.full
    }

    /// The limit to begin with.
    pub(super) fn first(&self) -> TimeLimit {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_is_learned_once_and_only_grows_then() {
        let second = Duration::from_secs(1);
        let mut patience = Patience::new(Limits::with_cpu(second), true);
        assert_eq!(patience.first(), patience.full());
        for _ in 0..2 * ENOUGH {
            patience.see(Duration::from_micros(10));
        }
        assert_eq!(patience.first().cpu, LEAST);
        patience.was_hasty();
        assert_eq!(patience.first().cpu, 2 * LEAST);
        for _ in 0..10 {
            patience.was_hasty();
        }
        assert_eq!(patience.first(), patience.full());
    }

    #[test]
    fn a_limit_of_the_user_stands() {
        let mut patience = Patience::new(Limits::default(), false);
        for _ in 0..2 * ENOUGH {
            patience.see(Duration::ZERO);
        }
        assert_eq!(patience.first(), patience.full());
    }
}

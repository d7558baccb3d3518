//! How long runs may take, and how much of a worker's time those may that take longer.

use std::time::{Duration, Instant};

use ddfuzz_exec::{Limits, TimeLimit};

/// How much longer than the mean run of the corpus any other may take.
const FACTOR: u32 = 10;
/// The least limit in CPU time: the kernel counts it in steps of some milliseconds.
const LEAST: Duration = Duration::from_millis(50);
/// The part of a worker's time that looking at runs over the limit may take: one of so many.
const SHARE: u32 = 5;
/// So much it may take at once.
const CREDIT: Duration = Duration::from_secs(3);

/// A worker's patience with slow runs.
///
/// A program that loops easily would else be waited for most of the time: each hang takes the
/// whole limit, and twice that again to be named. So runs get a limit that is learned from those
/// of the corpus. One that is over it is no hang yet: it is made once more within the limit that
/// findings are held to, and named, where there is time for that, and else forgotten.
#[derive(Debug)]
pub(super) struct Patience {
    /// What findings are held to.
    full: TimeLimit,
    /// What other runs are.
    learned: TimeLimit,
    /// How many runs were learned from, and their CPU time.
    runs: u32,
    cpu: Duration,
    began: Instant,
    spent: Duration,
}

impl Patience {
    /// As patient as the limits say.
    pub(super) fn new(limits: Limits) -> Patience {
        Patience {
            full: limits.into(),
            learned: limits.into(),
            runs: 0,
            cpu: Duration::ZERO,
            began: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// A run that passed and reached something new took this CPU time.
    pub(super) fn see(&mut self, cpu: Duration) {
        self.runs += 1;
        self.cpu += cpu;
    }

    /// Learns the limit from what was seen, if anything was.
    pub(super) fn learn(&mut self) {
        if let Some(mean) = self.cpu.checked_div(self.runs) {
            let limit = Limits::with_cpu(mean.saturating_mul(FACTOR).max(LEAST));
            self.learned = TimeLimit {
                cpu: self.full.cpu.min(limit.cpu),
                wall: self.full.wall.min(limit.wall),
            };
        }
    }

    /// The limit that findings are held to.
    pub(super) fn full(&self) -> TimeLimit {
        self.full
    }

    /// The limit on other runs.
    pub(super) fn learned(&self) -> TimeLimit {
        self.learned
    }

    /// Whether a run over the learned limit may be within the full one.
    pub(super) fn doubts(&self) -> bool {
        self.learned != self.full
    }

    /// Whether there is time to look at a run that is over its limit.
    pub(super) fn has_time(&self) -> bool {
        self.spent < self.began.elapsed() / SHARE + CREDIT
    }

    /// So much was taken by that.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(runs_ms: &[u64]) -> Patience {
        let mut patience = Patience::new(Limits::with_cpu(Duration::from_secs(1)));
        for ms in runs_ms {
            patience.see(Duration::from_millis(*ms));
        }
        patience.learn();
        patience
    }

    #[test]
    fn ten_times_the_mean_run_is_enough_within_the_full_limit() {
        let cpu = |runs_ms: &[u64]| patience(runs_ms).learned().cpu;
        assert_eq!(cpu(&[10, 30]), Duration::from_millis(200));
        assert_eq!(cpu(&[0, 1]), LEAST);
        assert_eq!(cpu(&[900]), Duration::from_secs(1));
        assert_eq!(cpu(&[]), Duration::from_secs(1));
        assert!(patience(&[1]).doubts() && !patience(&[]).doubts());
    }

    #[test]
    fn slow_runs_are_looked_at_until_their_share_is_spent() {
        let mut patience = patience(&[1]);
        assert!(patience.has_time());
        patience.spend(CREDIT + Duration::from_secs(3600));
        assert!(!patience.has_time());
    }
}

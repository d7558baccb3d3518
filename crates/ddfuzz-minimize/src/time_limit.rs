//! The time limit that a minimization learns from the runs of its input.

use ddfuzz_exec::{Limits, TimeLimit};
use std::time::Duration;

/// How much longer than a run that crashes any other may take.
const FACTOR: u32 = 10;
/// The least limit in CPU time: the kernel counts it in steps of some milliseconds.
const LEAST: Duration = Duration::from_millis(50);
/// How much longer than other runs those may take that a proof rests on: factor of the limits.
pub const PATIENCE: u32 = 10;

/// So much shorter than the limit that a hang was found with is that of the search.
const HURRY: u32 = 10;
/// The least such wall time: a run that passes has to start and end in it.
const LEAST_WALL: Duration = Duration::from_millis(500);

/// The limit on the runs in which a hang is searched, where `found` is the one that it was found
/// with: a tenth of that, at least 50 ms of CPU time and 500 ms of wall time.
pub fn hurried(found: TimeLimit) -> TimeLimit {
    TimeLimit {
        cpu: (found.cpu / HURRY).max(LEAST).min(found.cpu),
        wall: (found.wall / HURRY).max(LEAST_WALL).min(found.wall),
    }
}

/// The limit learned from the slowest crashing run, which took this CPU time: ten times that, at
/// least 50 ms; wall time twice as long, at least 2 s (minimizer.md, "Baseline").
///
/// `slept`: the wall time of the slowest run, where the runs of the input may wait for something
/// (a script may ask a server); those of candidates then may so ten times as long.
pub(super) fn learned(slowest: Duration, slept: Option<Duration>) -> TimeLimit {
    let limit: TimeLimit = Limits::with_cpu(slowest.saturating_mul(FACTOR).max(LEAST)).into();
    let slept = slept.unwrap_or_default().saturating_mul(FACTOR);
    TimeLimit {
        wall: limit.wall.max(slept),
        ..limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_crash_leaves_50_ms_and_a_slow_one_ten_times_its_own() {
        let limit = |ms| learned(Duration::from_millis(ms), None);
        assert_eq!(limit(0).cpu, Duration::from_millis(50));
        assert_eq!(limit(300).cpu, Duration::from_secs(3));
        assert_eq!(limit(0).wall, Duration::from_secs(2));
        assert_eq!(limit(300).wall, Duration::from_secs(6));
    }

    #[test]
    fn who_sleeps_may_sleep_ten_times_as_long() {
        let limit = |slept| learned(Duration::ZERO, Some(Duration::from_millis(slept)));
        assert_eq!(limit(3000).wall, Duration::from_secs(30));
        assert_eq!(limit(3000).cpu, Duration::from_millis(50));
        assert_eq!(limit(20).wall, Duration::from_secs(2));
    }
}

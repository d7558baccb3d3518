//! The time limit that a minimization learns from the runs of its input.

use ddfuzz_exec::TimeLimit;
use std::time::Duration;

/// Minimum of the learned limit on wall time, as a multiple of the wall time of the slowest run of
/// an interestingness script.
const SCRIPT_FACTOR: u32 = 10;
/// Factor by which runs that prove or confirm a result get a longer time limit than other runs.
pub const PROOF_TIME_FACTOR: u32 = 10;

/// Factor by which the time limit of runs in a search for a hang is shorter than the limit with
/// which the hang was found.
const HURRY: u32 = 10;
/// Minimum wall time limit of runs in a search for a hang, so that a passing run has time to start
/// and end.
const LEAST_WALL: Duration = Duration::from_millis(500);

/// Returns the time limit of runs in a search for a hang: a tenth of the limit `found` with which
/// the hang was found, but at least 50 ms of CPU time and 500 ms of wall time, and at most `found`.
pub fn hang_search_limit(found: TimeLimit) -> TimeLimit {
    TimeLimit {
        cpu: (found.cpu / HURRY).max(TimeLimit::MIN_LEARNED),
        wall: (found.wall / HURRY).max(LEAST_WALL),
    }
    .at_most(found)
}

/// Returns the time limit learned from the slowest crashing run, which took `slowest` of CPU time:
/// ten times that time, at least 50 ms, and twice as much wall time, at least 2 s
/// (docs/src/minimization.md).
///
/// `slept` is the wall time of the slowest run of a script, which may wait for something such as a
/// server; candidates then get at least ten times that wall time. `None` without a script.
pub(super) fn learned(slowest: Duration, slept: Option<Duration>) -> TimeLimit {
    let limit = TimeLimit::learned(slowest);
    let slept = slept.unwrap_or_default().saturating_mul(SCRIPT_FACTOR);
    TimeLimit {
        wall: limit.wall.max(slept),
        ..limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_ten_times_what_runs_took_and_have_a_minimum() {
        let millis = Duration::from_millis;
        for (cpu, slept, limit) in [
            (0, None, (50, 2000)),
            (300, None, (3000, 6000)),
            (0, Some(3000), (50, 30_000)),
            (0, Some(20), (50, 2000)),
        ] {
            let found = learned(millis(cpu), slept.map(millis));
            assert_eq!((found.cpu, found.wall), (millis(limit.0), millis(limit.1)));
        }
    }
}

//! How long a run has waited for a processor. A wall clock cannot tell a process that sleeps from
//! one that is kept from running by a busy machine; the scheduler can
//! (docs/decisions/0024).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::proc_tree;

/// However busy the machine, a run is over after so many times its wall limit.
const MOST: u32 = 10;

/// Time that a run was kept from running, looked at from time to time.
pub struct Starved {
    root: Pid,
    began: Instant,
    /// Up to here it is counted who waited; `None` before the first look.
    counted: Option<Instant>,
    /// What each thread had waited at the last look.
    before: HashMap<Pid, Duration>,
    total: Duration,
}

impl Starved {
    /// Begins to watch `root` and all that descends from it, in a run that began at `began`.
    pub fn new(root: Pid, began: Instant) -> Starved {
        Starved {
            root,
            began,
            counted: None,
            before: HashMap::new(),
            total: Duration::ZERO,
        }
    }

    /// Looks, and says whether the run has had its wall time: that in which one of its threads
    /// waited for a processor does not count, up to nine times the limit.
    pub fn wall_is_over(&mut self, limit: Duration) -> bool {
        let now = Instant::now();
        self.note(proc_tree::run_delays(self.root), now);
        let elapsed = now.duration_since(self.began);
        elapsed.saturating_sub(self.total) >= limit || elapsed >= limit.saturating_mul(MOST)
    }

    /// Counts the thread that has waited longest. The kernel tells of a wait at its end, when it may
    /// have lasted for many looks; what was counted is not counted again. What was before the first
    /// look is not of this run where a process serves many.
    fn note(&mut self, delays: HashMap<Pid, Duration>, now: Instant) {
        let counted = *self.counted.get_or_insert(now);
        let waited = delays.iter().map(|(thread, delay)| {
            let before = self.before.get(thread).copied().unwrap_or_default();
            delay.saturating_sub(before)
        });
        let longest = waited.max().unwrap_or_default();
        if !longest.is_zero() {
            self.total += longest.min(now.duration_since(counted));
            self.counted = Some(now);
        }
        self.before = delays;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(10);

    /// What is counted after looks, 10 ms apart, at what two threads have waited, in ms.
    fn starved(looks: &[&[(i32, u64)]]) -> Duration {
        let began = Instant::now();
        let mut starved = Starved::new(Pid::this(), began);
        for (at, delays) in (1..).zip(looks) {
            let delays = delays
                .iter()
                .map(|(pid, ms)| (Pid::from_raw(*pid), Duration::from_millis(*ms)));
            starved.note(delays.collect(), began + SLICE * at);
        }
        starved.total
    }

    #[test]
    fn what_was_waited_before_the_first_look_is_not_of_this_run() {
        assert_eq!(starved(&[&[(7, 900)]]), Duration::ZERO);
        assert_eq!(starved(&[&[(7, 900)], &[(7, 908)]]).as_millis(), 8);
    }

    #[test]
    fn threads_that_wait_at_the_same_time_count_once() {
        let looks: [&[(i32, u64)]; 2] = [&[(7, 0), (8, 5)], &[(7, 9), (8, 11)]];
        assert_eq!(starved(&looks).as_millis(), 9);
    }

    #[test]
    fn what_a_dead_child_has_waited_stays_counted() {
        let looks: [&[(i32, u64)]; 4] = [&[], &[(7, 6)], &[(8, 5)], &[]];
        assert_eq!(starved(&looks).as_millis(), 11);
    }

    #[test]
    fn a_wait_is_told_of_at_its_end_and_counts_from_its_beginning() {
        let looks: [&[(i32, u64)]; 5] = [&[(7, 3)], &[(7, 3)], &[(7, 3)], &[(7, 3)], &[(7, 38)]];
        assert_eq!(starved(&looks).as_millis(), 35);
    }

    #[test]
    fn nobody_waits_longer_than_the_clock_runs() {
        assert_eq!(starved(&[&[], &[(7, 500)]]), SLICE);
        let one_after_the_other: [&[(i32, u64)]; 4] = [&[], &[], &[(7, 20)], &[(7, 20), (8, 30)]];
        assert_eq!(starved(&one_after_the_other), SLICE * 3);
    }

    #[test]
    fn a_sleeper_has_its_wall_time_and_the_longest_patience_ends() {
        let ago = |ms| Instant::now().checked_sub(Duration::from_millis(ms));
        let limit = Duration::from_secs(1);
        let over = |ms, total| {
            let mut starved = Starved::new(Pid::from_raw(i32::MAX), ago(ms)?);
            starved.total = Duration::from_millis(total);
            Some(starved.wall_is_over(limit))
        };
        assert_eq!(over(1001, 0), Some(true));
        assert_eq!(over(1500, 1400), Some(false));
        assert_eq!(over(10_001, 10_000), Some(true));
    }
}

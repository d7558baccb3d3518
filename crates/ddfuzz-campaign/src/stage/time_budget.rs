//! The share of a worker's time that minimization may take from fuzzing.

use std::time::Duration;

/// Greatest unspent part of its share of the time that minimization may save up; so its usual time
/// slices are this long.
pub(super) const MAX_SLICE: Duration = Duration::from_millis(100);
/// Shortest time slice of a minimization; in a shorter one, the switch between threads would take
/// most of the time.
const MIN_SLICE: Duration = Duration::from_millis(20);
/// Time that the minimization of a new group may take at once, so that an easy group is minimized
/// immediately.
pub(super) const CREDIT: Duration = Duration::from_secs(1);
/// If minimization has taken at least this much time beyond its share, a new group does not get its
/// [`CREDIT`] of time, so that a burst of new groups does not stop the fuzzing.
const MAX_OVERSPENT: Duration = Duration::from_secs(10);
/// Minimizing hangs and memory blow-ups may take the time that minimization as a whole may take,
/// divided by this number.
const HANG_DIVISOR: u32 = 4;
/// Limit on the time of classifying the fuzzer's solutions during fuzzing. No solution is
/// classified while the stage has taken this much more time than its share, or, if a group waits to
/// be minimized, while classification has taken this much more time than minimization.
const MAX_OVERSPENT_TO_CLASSIFY: Duration = Duration::from_secs(1);

/// The time budget of one worker for classifying solutions and minimizing groups. It reads no
/// clock: callers pass the times.
///
/// The budget earns a share of all time that passes. It saves up at most [`MAX_SLICE`] of its
/// earnings, so a hard group gets short slices even if no group was minimized for long. A slice may
/// take more than was earned, by its credit or because a test lasts long; the excess is overspent,
/// and repaid with later earnings.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeBudget {
    /// Share of all passing time that minimization and classification earn, in percent.
    percent: u8,
    /// Whether fuzzing has ended, so that minimization and classification may take all time.
    unlimited: bool,
    /// Time since the budget was made up to which it has earned its share.
    now: Duration,
    /// Time that minimization and classification have earned and not spent yet.
    earned: Duration,
    /// Time that minimization and classification have spent before it was earned; it is repaid with
    /// later earnings.
    overspent: Duration,
    /// All time that minimization and classification have spent.
    spent: Duration,
    /// Part of the field `spent` (time of minimization and classification): the time that
    /// classification took.
    classifying: Duration,
    /// Part of the field `spent` (time of minimization and classification): the time that
    /// minimizing hangs and memory blow-ups took.
    hangs: Duration,
}

impl TimeBudget {
    /// Creates the budget of minimization and classification, which earns `percent` percent of all
    /// time, 100 at most.
    pub(super) fn new(percent: u8) -> TimeBudget {
        TimeBudget {
            percent: percent.min(100),
            ..TimeBudget::default()
        }
    }

    /// Lets minimization and classification take all time from this call on, since fuzzing has
    /// ended.
    pub(super) fn set_unlimited(&mut self) {
        self.unlimited = true;
    }

    /// Adds to the budget its share of the time since the last call; overspent time is repaid
    /// first. `now` is the time since the budget was made.
    pub(super) fn pass(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        let earned = passed * u32::from(self.percent) / 100;
        let repaid = earned.min(self.overspent);
        self.overspent -= repaid;
        // Not limited by `MAX_SLICE`: the rounds of a slow target are long.
        self.earned = self.earned.min(MAX_SLICE) + (earned - repaid);
    }

    /// Records that minimization took the time `taken`; the part that was not earned counts as
    /// overspent.
    pub(super) fn spend(&mut self, taken: Duration) {
        let paid = taken.min(self.earned);
        self.earned -= paid;
        self.overspent += taken - paid;
        self.spent += taken;
    }

    /// Records that minimizing a hang or a memory blow-up took the time `taken`.
    pub(super) fn spend_on_hangs(&mut self, taken: Duration) {
        self.spend(taken);
        self.hangs += taken;
    }

    /// Records that classification of the fuzzer's solutions took the time `taken`.
    pub(super) fn spend_on_classifying(&mut self, taken: Duration) {
        self.spend(taken);
        self.classifying += taken;
    }

    /// Returns the length of the next time slice for minimizing a group, or `None` if no slice is
    /// permitted at present. A new group gets its remaining `credit` at once, unless 10 s or more
    /// are overspent (taken beyond the share of minimization). Any other group gets the time that
    /// was earned, if this is at least 20 ms and no time is overspent. After fuzzing, each slice
    /// has 100 ms.
    pub(super) fn slice(&self, credit: Duration) -> Option<Duration> {
        if self.unlimited {
            return Some(MAX_SLICE);
        }
        if self.percent == 0 {
            return None;
        }
        if credit > Duration::ZERO && self.overspent < MAX_OVERSPENT {
            return Some(credit.max(MIN_SLICE));
        }
        let enough = self.overspent.is_zero() && self.earned >= MIN_SLICE;
        enough.then_some(self.earned)
    }

    /// Returns the length of the next time slice for minimizing a hang or a memory blow-up, or
    /// `None` if no slice is permitted at present. Since their runs take long, all of them together
    /// get at most a quarter of the time that minimization may take, and new groups get no extra
    /// time.
    pub(super) fn slice_for_hangs(&self) -> Option<Duration> {
        let part = self.now * u32::from(self.percent) / (100 * HANG_DIVISOR);
        let fair = self.unlimited || self.hangs < part;
        self.slice(Duration::ZERO).filter(|_| fair)
    }

    /// Returns true if a solution of the fuzzer may be classified: always after fuzzing. During
    /// fuzzing, the time that the worker has spent on classification and minimization must exceed
    /// its budget by less than a second. If a group waits to be minimized (`waits`), classification
    /// must also not have taken over a second more than minimization.
    pub(super) fn may_classify(&self, waits: bool) -> bool {
        let minimized = self.spent - self.classifying;
        let fair = !waits || self.classifying <= minimized + MAX_OVERSPENT_TO_CLASSIFY;
        self.unlimited || self.overspent < MAX_OVERSPENT_TO_CLASSIFY && fair
    }

    /// Returns the time that minimization and classification have spent, and the time that has
    /// passed since the budget was made.
    pub(super) fn used(&self) -> (Duration, Duration) {
        (self.spent, self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Simulates the minimization of a group that never ends, with a budget of `percent` percent of
    /// the time. Its time slices alternate with fuzzing rounds of length `round`, and each slice
    /// lasts `over` longer than permitted. Returns the share of the time, from 0 to 1, that the
    /// slices took.
    fn share_of_a_hard_group(percent: u8, round: Duration, over: Duration) -> f64 {
        let mut budget = TimeBudget::new(percent);
        let (mut now, mut credit) = (Duration::ZERO, CREDIT);
        while now < Duration::from_secs(600) {
            now += round;
            budget.pass(now);
            if let Some(slice) = budget.slice(credit) {
                credit = credit.saturating_sub(slice + over);
                now += slice + over;
                budget.spend(slice + over);
            }
        }
        budget.pass(now);
        let (spent, passed) = budget.used();
        spent.as_secs_f64() / passed.as_secs_f64()
    }

    #[test]
    fn a_hard_group_takes_its_share_and_no_more() {
        for percent in [1, 5, 20, 50] {
            for round in [ms(3), ms(40), ms(700), ms(5000)] {
                let share = share_of_a_hard_group(percent, round, Duration::ZERO);
                let most = f64::from(percent) / 100.0;
                let fair = most * 0.9 - 0.01..most + 0.01;
                assert!(
                    fair.contains(&share),
                    "{share} of {most}, rounds of {round:?}"
                );
            }
        }
    }

    #[test]
    fn tests_that_outlast_their_slice_are_repaid() {
        let share = share_of_a_hard_group(20, ms(30), ms(2000));
        assert!((0.18..0.21).contains(&share), "{share}");
    }

    #[test]
    fn a_new_group_has_a_second_at_once_that_is_repaid_later() {
        let mut budget = TimeBudget::new(20);
        budget.pass(ms(1));
        assert_eq!(budget.slice(CREDIT), Some(CREDIT));
        budget.spend(CREDIT);
        budget.pass(ms(1001));
        assert_eq!(budget.slice(Duration::ZERO), None);
        // 5 s of time repay 1 s.
        budget.pass(ms(4900));
        assert_eq!(budget.slice(Duration::ZERO), None);
        budget.pass(ms(5200));
        assert!(budget.slice(Duration::ZERO).is_some());
    }

    #[test]
    fn a_burst_of_new_groups_does_not_stop_the_fuzzing() {
        let mut budget = TimeBudget::new(20);
        let (mut now, mut begun) = (Duration::ZERO, 0);
        while let Some(slice) = budget.slice(CREDIT) {
            budget.spend(slice);
            now += slice;
            budget.pass(now);
            begun += 1;
            assert!(begun < 20, "it never ends");
        }
        assert!(begun >= 10, "{begun}");
    }

    #[test]
    fn hours_without_a_crash_save_up_nothing() {
        let mut budget = TimeBudget::new(20);
        for second in 0..36_000 {
            budget.pass(Duration::from_secs(second));
        }
        let slice = budget.slice(Duration::ZERO).unwrap();
        assert!(slice <= MAX_SLICE + ms(200), "{slice:?}");
    }

    #[test]
    fn naming_without_end_leaves_half_of_the_share_to_minimization() {
        let mut budget = TimeBudget::new(20);
        let (mut now, mut named) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_secs(600) {
            now += ms(20);
            budget.pass(now);
            while budget.may_classify(true) {
                budget.spend_on_classifying(ms(5));
                (now, named) = (now + ms(5), named + ms(5));
            }
            if let Some(slice) = budget.slice(Duration::ZERO) {
                budget.spend(slice);
                now += slice;
            }
        }
        budget.pass(now);
        let (spent, passed) = budget.used();
        let share = spent.as_secs_f64() / passed.as_secs_f64();
        assert!((0.18..0.21).contains(&share), "{share}");
        let half = named.as_secs_f64() / spent.as_secs_f64();
        assert!((0.45..0.55).contains(&half), "{half}");
    }

    #[test]
    fn all_time_may_be_taken_when_the_fuzzing_has_ended() {
        let mut budget = TimeBudget::new(0);
        budget.pass(Duration::from_secs(100));
        assert_eq!(budget.slice(CREDIT), None, "a share of 0 minimizes nothing");
        budget.spend(Duration::from_secs(100));
        budget.set_unlimited();
        assert_eq!(budget.slice(Duration::ZERO), Some(MAX_SLICE));
        assert!(budget.may_classify(false));
    }

    #[test]
    fn hangs_get_a_part_of_the_share_and_no_credit() {
        let mut budget = TimeBudget::new(20);
        let (mut now, mut took) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_secs(600) {
            now += ms(30);
            budget.pass(now);
            if budget.slice_for_hangs().is_some() {
                // A run of a hang lasts as long as it may.
                budget.spend_on_hangs(ms(1000));
                (now, took) = (now + ms(1000), took + ms(1000));
            }
        }
        let share = took.as_secs_f64() / now.as_secs_f64();
        assert!((0.04..0.06).contains(&share), "{share}");
        budget.set_unlimited();
        assert_eq!(budget.slice_for_hangs(), Some(MAX_SLICE));
    }

    #[test]
    fn findings_wait_where_naming_them_takes_too_much() {
        let mut budget = TimeBudget::new(20);
        assert!(budget.may_classify(false));
        budget.spend(ms(1500));
        assert!(!budget.may_classify(false));
        budget.pass(ms(3000));
        assert!(budget.may_classify(false));
    }
}

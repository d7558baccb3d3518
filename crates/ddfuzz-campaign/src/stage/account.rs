//! How much time minimization may take from fuzzing.

use std::time::Duration;

/// How much of what is earned is saved; and a slice without a credit is no longer where fuzzing has
/// shorter rounds than that.
pub const LONGEST_SLICE: Duration = Duration::from_millis(100);
/// Shorter ones would go into handing over.
const SHORTEST_SLICE: Duration = Duration::from_millis(20);
/// What a new group may take at once: an easy one is minimized within it.
pub const CREDIT: Duration = Duration::from_secs(1);
/// No credit is given where so much is owed: a burst of new groups does not stop the fuzzing.
const MOST_OWED: Duration = Duration::from_secs(10);
/// Hangs get one of so many parts of the share.
const OF_SHARE: u32 = 4;
/// Findings are not classified any more where so much is owed.
const OWED_BEFORE_NAMING: Duration = Duration::from_secs(1);

/// The account of one worker's time. It knows no clock: times are given.
///
/// Of all time that passes a share is earned. What is not used is not saved up, beyond
/// [`LONGEST_SLICE`]: a hard group gets short slices, and never a long one for the hours before
/// it. What a slice takes beyond what was earned, by a credit or by a test that lasts, is owed,
/// and repaid by what is earned later.
#[derive(Clone, Debug)]
pub struct Account {
    percent: u8,
    /// Nothing but this is done: no share is kept.
    alone: bool,
    /// Up to when it was earned.
    now: Duration,
    earned: Duration,
    owed: Duration,
    spent: Duration,
    /// Of it, by classifying.
    named: Duration,
    /// And by minimizing hangs.
    hung: Duration,
}

impl Account {
    /// An account that earns `percent` of all time, 100 at most.
    pub fn new(percent: u8) -> Account {
        Account {
            percent: percent.min(100),
            alone: false,
            now: Duration::ZERO,
            earned: Duration::ZERO,
            owed: Duration::ZERO,
            spent: Duration::ZERO,
            named: Duration::ZERO,
            hung: Duration::ZERO,
        }
    }

    /// The fuzzing has ended: from here on all time may be taken.
    pub fn take_all(&mut self) {
        self.alone = true;
    }

    /// Time has passed: `now` is the time since the beginning.
    pub fn pass(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        let earned = passed * u32::from(self.percent) / 100;
        let repaid = earned.min(self.owed);
        self.owed -= repaid;
        // However long it was since the last time: a slow target's rounds are long.
        self.earned = self.earned.min(LONGEST_SLICE) + (earned - repaid);
    }

    /// Records time that was taken.
    pub fn spend(&mut self, taken: Duration) {
        let paid = taken.min(self.earned);
        self.earned -= paid;
        self.owed += taken - paid;
        self.spent += taken;
    }

    /// Records time that was taken for a hang, or a memory blow-up.
    pub fn spend_on_hangs(&mut self, taken: Duration) {
        self.spend(taken);
        self.hung += taken;
    }

    /// How long a slice may be for one of these, each run of which takes long: they get a part of
    /// the share, and no credit.
    pub fn slice_for_hangs(&self) -> Option<Duration> {
        let part = self.now * u32::from(self.percent) / (100 * OF_SHARE);
        let fair = self.alone || self.hung < part;
        self.slice(Duration::ZERO).filter(|_| fair)
    }

    /// Records time that was taken for classifying findings.
    pub fn spend_on_naming(&mut self, taken: Duration) {
        self.spend(taken);
        self.named += taken;
    }

    /// How long a slice may be, for what has `credit` left; `None`: not now.
    pub fn slice(&self, credit: Duration) -> Option<Duration> {
        if self.alone {
            return Some(LONGEST_SLICE);
        }
        if self.percent == 0 {
            return None;
        }
        if credit > Duration::ZERO && self.owed < MOST_OWED {
            return Some(credit.max(SHORTEST_SLICE));
        }
        let enough = self.owed.is_zero() && self.earned >= SHORTEST_SLICE;
        enough.then_some(self.earned)
    }

    /// Whether a finding may be classified: a fuzzer that hands in each crash is not stopped by
    /// them. Where a group waits for its slices (`waits`), classifying takes half of the share.
    pub fn may_name(&self, waits: bool) -> bool {
        let minimized = self.spent - self.named;
        let fair = !waits || self.named <= minimized + OWED_BEFORE_NAMING;
        self.alone || self.owed < OWED_BEFORE_NAMING && fair
    }

    /// Time taken, and time that has passed.
    pub fn used(&self) -> (Duration, Duration) {
        (self.spent, self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Lets a group without end be minimized beside fuzzing in rounds of `round`, in slices that
    /// last as long as they may and `over` longer, and gives the share that it took.
    fn share_of_a_hard_group(percent: u8, round: Duration, over: Duration) -> f64 {
        let mut account = Account::new(percent);
        let (mut now, mut credit) = (Duration::ZERO, CREDIT);
        while now < Duration::from_secs(600) {
            now += round;
            account.pass(now);
            if let Some(slice) = account.slice(credit) {
                credit = credit.saturating_sub(slice + over);
                now += slice + over;
                account.spend(slice + over);
            }
        }
        account.pass(now);
        let (spent, passed) = account.used();
        spent.as_secs_f64() / passed.as_secs_f64()
    }

    #[test]
    fn a_hard_group_takes_its_share_and_no_more() {
        for percent in [1, 5, 20, 50] {
            for round in [ms(3), ms(40), ms(700), ms(5000)] {
                let share = share_of_a_hard_group(percent, round, Duration::ZERO);
                let most = f64::from(percent) / 100.0;
                assert!(
                    share < most + 0.01,
                    "{share} of {most}, rounds of {round:?}"
                );
                assert!(
                    share > most * 0.9 - 0.01,
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
        let mut account = Account::new(20);
        account.pass(ms(1));
        assert_eq!(account.slice(CREDIT), Some(CREDIT));
        account.spend(CREDIT);
        account.pass(ms(1001));
        assert_eq!(account.slice(Duration::ZERO), None);
        // 5 s of time repay 1 s.
        account.pass(ms(4900));
        assert_eq!(account.slice(Duration::ZERO), None);
        account.pass(ms(5200));
        assert!(account.slice(Duration::ZERO).is_some());
    }

    #[test]
    fn a_burst_of_new_groups_does_not_stop_the_fuzzing() {
        let mut account = Account::new(20);
        let (mut now, mut begun) = (Duration::ZERO, 0);
        while let Some(slice) = account.slice(CREDIT) {
            account.spend(slice);
            now += slice;
            account.pass(now);
            begun += 1;
            assert!(begun < 20, "it never ends");
        }
        assert!(begun >= 10, "{begun}");
    }

    #[test]
    fn hours_without_a_crash_save_up_nothing() {
        let mut account = Account::new(20);
        for second in 0..36_000 {
            account.pass(Duration::from_secs(second));
        }
        let slice = account.slice(Duration::ZERO).unwrap();
        assert!(slice <= LONGEST_SLICE + ms(200), "{slice:?}");
    }

    #[test]
    fn a_share_of_nothing_minimizes_nothing() {
        let mut account = Account::new(0);
        account.pass(Duration::from_secs(100));
        assert_eq!(account.slice(CREDIT), None);
    }

    #[test]
    fn naming_without_end_leaves_half_of_the_share_to_minimization() {
        let mut account = Account::new(20);
        let (mut now, mut named) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_secs(600) {
            now += ms(20);
            account.pass(now);
            while account.may_name(true) {
                account.spend_on_naming(ms(5));
                (now, named) = (now + ms(5), named + ms(5));
            }
            if let Some(slice) = account.slice(Duration::ZERO) {
                account.spend(slice);
                now += slice;
            }
        }
        account.pass(now);
        let (spent, passed) = account.used();
        let share = spent.as_secs_f64() / passed.as_secs_f64();
        assert!((0.18..0.21).contains(&share), "{share}");
        let half = named.as_secs_f64() / spent.as_secs_f64();
        assert!((0.45..0.55).contains(&half), "{half}");
    }

    #[test]
    fn all_time_may_be_taken_when_the_fuzzing_has_ended() {
        let mut account = Account::new(0);
        account.spend(Duration::from_secs(100));
        account.take_all();
        assert_eq!(account.slice(Duration::ZERO), Some(LONGEST_SLICE));
        assert!(account.may_name(false));
    }

    #[test]
    fn hangs_get_a_part_of_the_share_and_no_credit() {
        let mut account = Account::new(20);
        let (mut now, mut took) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_secs(600) {
            now += ms(30);
            account.pass(now);
            if account.slice_for_hangs().is_some() {
                // A run of a hang lasts as long as it may.
                account.spend_on_hangs(ms(1000));
                (now, took) = (now + ms(1000), took + ms(1000));
            }
        }
        let share = took.as_secs_f64() / now.as_secs_f64();
        assert!((0.04..0.06).contains(&share), "{share}");
        account.take_all();
        assert_eq!(account.slice_for_hangs(), Some(LONGEST_SLICE));
    }

    #[test]
    fn findings_wait_where_naming_them_takes_too_much() {
        let mut account = Account::new(20);
        assert!(account.may_name(false));
        account.spend(ms(1500));
        assert!(!account.may_name(false));
        account.pass(ms(3000));
        assert!(account.may_name(false));
    }
}

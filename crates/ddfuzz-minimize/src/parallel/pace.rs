//! What tests cost, and whether running ahead is worth it.

use std::collections::VecDeque;
use std::time::Duration;

/// Tests that the median is of.
const LAST: usize = 9;
/// With fewer tests than this, a test has to cost this many times as much.
const FEW: usize = 3;
const SURELY: u32 = 10;

/// Wall time of the last tests, those in fresh processes apart.
#[derive(Debug)]
pub(super) struct Pace {
    worth: Duration,
    /// Whether tests are run ahead now.
    ahead: bool,
    fast: VecDeque<Duration>,
    fresh: VecDeque<Duration>,
}

impl Pace {
    /// Running ahead is worth it where a test costs so much.
    pub fn new(worth: Duration) -> Pace {
        Pace {
            worth,
            ahead: false,
            fast: VecDeque::new(),
            fresh: VecDeque::new(),
        }
    }

    /// Takes notice of what a test cost.
    pub fn note(&mut self, fresh: bool, cost: Duration) {
        let costs = match fresh {
            true => &mut self.fresh,
            false => &mut self.fast,
        };
        if costs.len() == LAST {
            costs.pop_front();
        }
        costs.push_back(cost);
    }

    /// Whether running ahead is worth it now. Fresh processes cost at least as much as others. Once
    /// begun it goes on down to half the cost, because each beginning takes a clone of the search;
    /// and a single test that happened to wait for a processor is no reason to begin.
    pub fn is_worth_it(&mut self, fresh: bool) -> bool {
        let costs = match fresh && !self.fresh.is_empty() {
            true => &self.fresh,
            false => &self.fast,
        };
        let least = match self.ahead {
            true => self.worth / 2,
            false if costs.len() < FEW => self.worth * SURELY,
            false => self.worth,
        };
        let enough = costs.iter().filter(|cost| **cost >= least).count();
        self.ahead = 2 * enough > costs.len() || least.is_zero();
        self.ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides_and_not_a_few_slow_tests() {
        let mut pace = Pace::new(Duration::from_micros(200));
        assert!(!pace.is_worth_it(false));
        for cost in [15, 15, 15, 9000, 9000] {
            pace.note(false, Duration::from_micros(cost));
        }
        assert!(!pace.is_worth_it(false) && !pace.is_worth_it(true));
        (0..FEW).for_each(|_| pace.note(true, Duration::from_micros(700)));
        assert!(!pace.is_worth_it(false) && pace.is_worth_it(true));
    }

    #[test]
    fn what_has_begun_does_not_end_for_a_little_less() {
        let mut pace = Pace::new(Duration::from_micros(200));
        let worth = [199, 200, 101, 99, 101].map(|cost| {
            (0..LAST).for_each(|_| pace.note(false, Duration::from_micros(cost)));
            pace.is_worth_it(false)
        });
        assert_eq!(worth, [false, true, true, false, false]);
    }

    #[test]
    fn one_test_is_only_believed_where_it_says_much() {
        for (cost, worth) in [(15, false), (900, false), (2000, true)] {
            let mut pace = Pace::new(Duration::from_micros(200));
            assert!(!pace.is_worth_it(false));
            pace.note(false, Duration::from_micros(cost));
            assert_eq!(pace.is_worth_it(false), worth, "{cost}");
        }
    }

    #[test]
    fn what_is_worth_it_at_no_cost_is_always_worth_it() {
        assert!(Pace::new(Duration::ZERO).is_worth_it(false));
    }
}

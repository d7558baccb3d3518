//! What tests cost, and whether running ahead is worth it.

use std::collections::VecDeque;
use std::time::Duration;

/// Tests that the median is of.
const LAST: usize = 9;

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

    /// Whether running ahead is worth it now. As long as nothing is known it is not, unless it
    /// always is. Fresh processes cost at least as much as others. Once begun it goes on down to
    /// half the cost, because each beginning takes a clone of the search.
    pub fn is_worth_it(&mut self, fresh: bool) -> bool {
        let median = match fresh {
            true => median(&self.fresh).or_else(|| median(&self.fast)),
            false => median(&self.fast),
        };
        let least = match self.ahead {
            true => self.worth / 2,
            false => self.worth,
        };
        self.ahead = median.unwrap_or_default() >= least;
        self.ahead
    }
}

/// The median, the upper one of two.
fn median(costs: &VecDeque<Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = costs.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
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
        pace.note(true, Duration::from_micros(700));
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
    fn what_is_worth_it_at_no_cost_is_always_worth_it() {
        assert!(Pace::new(Duration::ZERO).is_worth_it(false));
    }
}

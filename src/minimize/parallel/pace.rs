//! What tests cost, and whether running ahead is worth it.

use std::collections::VecDeque;
use std::time::Duration;

/// Tests that the median is of.
const LAST: usize = 9;

/// Wall time of the last tests, those in fresh processes apart.
#[derive(Debug)]
pub(super) struct Pace {
    worth: Duration,
    fast: VecDeque<Duration>,
    fresh: VecDeque<Duration>,
}

impl Pace {
    /// Running ahead is worth it where a test costs so much.
    pub fn new(worth: Duration) -> Pace {
        Pace {
            worth,
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
    /// always is. Fresh processes cost at least as much as others.
    pub fn is_worth_it(&self, fresh: bool) -> bool {
        let median = match fresh {
            true => median(&self.fresh).or_else(|| median(&self.fast)),
            false => median(&self.fast),
        };
        median.unwrap_or_default() >= self.worth
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
        for _ in 0..LAST {
            pace.note(false, Duration::from_micros(300));
        }
        assert!(pace.is_worth_it(false));
    }

    #[test]
    fn what_is_worth_it_at_no_cost_is_always_worth_it() {
        assert!(Pace::new(Duration::ZERO).is_worth_it(false));
    }
}

//! Decides whether to run tests ahead: the cost of tests, the cost of a prediction, and the likely
//! outcome of a candidate.

use ddfuzz_delta::{Outcome, Rule};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Number of tests, the last ones, whose median wall time decides whether workers run predicted
/// tests ahead.
const LAST: usize = 9;
/// Number of measured tests whose median wall time alone decides whether workers run tests ahead;
/// as long as there are fewer, the median must be [`SURELY`] times as large.
const FEW: usize = 3;
/// Factor by which tests must take longer for workers to run predicted tests ahead, as long as
/// fewer than [`FEW`] tests were measured.
const SURELY: u32 = 10;

/// Decides by the wall times of recent tests whether workers run predicted tests ahead; tests in
/// fresh processes are counted separately.
#[derive(Debug)]
pub(super) struct TestCost {
    worth: Duration,
    /// Whether workers run predicted tests ahead of the search at present.
    ahead: bool,
    fast: VecDeque<Duration>,
    fresh: VecDeque<Duration>,
}

impl TestCost {
    /// Makes an empty cost model. Workers shall run tests ahead if the median wall time of a test
    /// is at least `worth`.
    pub fn new(worth: Duration) -> TestCost {
        TestCost {
            worth,
            ahead: false,
            fast: VecDeque::new(),
            fresh: VecDeque::new(),
        }
    }

    /// Records the wall time `cost` of a test; `fresh` says that it ran in a fresh process.
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

    /// Returns true if workers should run predicted tests ahead now, that is, if most of the last
    /// tests took at least the wall time given to `new`. If workers do so already, half of that
    /// time suffices, because each new beginning would clone the search. The first few tests must
    /// take longer, because a single slow one may have waited for a processor. `fresh`: tests in
    /// fresh processes are asked for, which are measured separately.
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

/// After a prediction of tests, the next one begins at the earliest after this many times the
/// duration of the ended one.
const TIMES: u32 = 8;

/// Measures how long predictions of tests take, and limits how often they begin. A prediction
/// begins with a clone of the search, which may take as long as the search so far. If predictions
/// are often wrong, cloning takes more time than workers save, so tests are then run one after
/// another for a while.
#[derive(Debug, Default)]
pub(super) struct LookAheadCost {
    last: Option<(Instant, Duration)>,
}

impl LookAheadCost {
    /// Checks whether enough time has passed since the last prediction of tests to begin another
    /// prediction.
    pub fn allows_next(&self) -> bool {
        self.last
            .is_none_or(|(ended, cost)| ended.elapsed() >= cost * TIMES)
    }

    /// Calls `look`, which makes a prediction, records how long that takes, and returns the
    /// prediction.
    pub fn measure<T>(&mut self, look: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let seen = look();
        self.last = Some((Instant::now(), began.elapsed()));
        seen
    }
}

/// Predicts the outcome (PASS or UNRESOLVED) of a candidate that does not fail, from the last eight
/// outcomes of candidates that the same rule of the search made. Only the search `dd-plus`
/// distinguishes these two outcomes.
#[derive(Debug, Default)]
pub(super) struct OutcomePrediction {
    /// For each rule of the search, the outcomes of its last eight candidates that did not fail, as
    /// bits: 1 for UNRESOLVED, 0 for PASS; the lowest bit is the last one.
    last: HashMap<Rule, u8>,
}

impl OutcomePrediction {
    /// Records the outcome of a candidate that was made by the rule `rule` of the search, so that
    /// outcomes of later candidates of this rule can be predicted. FAIL is ignored.
    pub fn learn(&mut self, rule: Rule, outcome: Outcome) {
        if outcome == Outcome::Fail {
            return;
        }
        let bits = self.last.entry(rule).or_default();
        *bits = *bits << 1 | u8::from(outcome == Outcome::Unresolved);
    }

    /// Returns the outcome, PASS or UNRESOLVED, that is predicted for a candidate made by the rule
    /// `rule`, from the last outcomes of candidates of this rule; never FAIL.
    pub fn likely(&self, rule: Rule) -> Outcome {
        match self.last.get(&rule).map(|bits| bits.count_ones()) {
            Some(4..) => Outcome::Unresolved,
            _ => Outcome::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides_and_not_a_few_slow_tests() {
        let mut test_cost = TestCost::new(Duration::from_micros(200));
        assert!(!test_cost.is_worth_it(false));
        for cost in [15, 15, 15, 9000, 9000] {
            test_cost.note(false, Duration::from_micros(cost));
        }
        assert!(!test_cost.is_worth_it(false) && !test_cost.is_worth_it(true));
        (0..FEW).for_each(|_| test_cost.note(true, Duration::from_micros(700)));
        assert!(!test_cost.is_worth_it(false) && test_cost.is_worth_it(true));
    }

    #[test]
    fn what_has_begun_does_not_end_for_a_little_less() {
        let mut test_cost = TestCost::new(Duration::from_micros(200));
        let worth = [199, 200, 101, 99, 101].map(|cost| {
            (0..LAST).for_each(|_| test_cost.note(false, Duration::from_micros(cost)));
            test_cost.is_worth_it(false)
        });
        assert_eq!(worth, [false, true, true, false, false]);
    }

    #[test]
    fn a_single_test_decides_only_if_it_is_very_slow() {
        for (cost, worth) in [(15, false), (900, false), (2000, true)] {
            let mut test_cost = TestCost::new(Duration::from_micros(200));
            test_cost.note(false, Duration::from_micros(cost));
            assert_eq!(test_cost.is_worth_it(false), worth, "{cost}");
        }
        assert!(TestCost::new(Duration::ZERO).is_worth_it(false));
    }

    #[test]
    fn the_outcome_of_most_of_the_last_tests_is_the_likely_one() {
        let mut prediction = OutcomePrediction::default();
        let rules = [Rule::Subset, Rule::Complement];
        assert_eq!(
            rules.map(|rule| prediction.likely(rule)),
            [Outcome::Pass; 2]
        );
        for outcome in [Outcome::Unresolved, Outcome::Fail] {
            (0..4).for_each(|_| prediction.learn(Rule::Subset, outcome));
        }
        let likely = rules.map(|rule| prediction.likely(rule));
        assert_eq!(likely, [Outcome::Unresolved, Outcome::Pass]);
        (0..5).for_each(|_| prediction.learn(Rule::Subset, Outcome::Pass));
        assert_eq!(prediction.likely(Rule::Subset), Outcome::Pass);
    }
}

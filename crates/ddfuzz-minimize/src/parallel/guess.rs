//! Which outcome a candidate that does not fail is likely to have.

use std::collections::HashMap;

use ddfuzz_delta::{Outcome, Rule};

/// Remembers the last eight outcomes of each rule, FAIL aside: most searches take PASS and
/// UNRESOLVED alike, `dd-plus` goes other ways.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// One bit for each outcome, set where it was UNRESOLVED, the last one lowest.
    last: HashMap<Rule, u8>,
}

impl Guess {
    /// Takes notice of an outcome.
    pub fn learn(&mut self, rule: Rule, outcome: Outcome) {
        if outcome == Outcome::Fail {
            return;
        }
        let bits = self.last.entry(rule).or_default();
        *bits = *bits << 1 | u8::from(outcome == Outcome::Unresolved);
    }

    /// The likely outcome of a candidate of this rule that does not fail.
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
    fn the_outcome_of_most_of_the_last_tests_is_the_likely_one() {
        let mut guess = Guess::default();
        let rules = [Rule::Subset, Rule::Complement];
        assert_eq!(rules.map(|rule| guess.likely(rule)), [Outcome::Pass; 2]);
        for outcome in [Outcome::Unresolved, Outcome::Fail] {
            (0..4).for_each(|_| guess.learn(Rule::Subset, outcome));
        }
        let likely = rules.map(|rule| guess.likely(rule));
        assert_eq!(likely, [Outcome::Unresolved, Outcome::Pass]);
        (0..5).for_each(|_| guess.learn(Rule::Subset, Outcome::Pass));
        assert_eq!(guess.likely(Rule::Subset), Outcome::Pass);
    }
}

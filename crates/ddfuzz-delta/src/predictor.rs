//! Predictors: they derive outcomes without a run, from rules about the units.

use crate::{Config, Outcome};

/// A predictor, which answers tests without running them (ESEC 1999, section 6). Its predictions
/// must be true: a wrong one misleads the search, although the search's result is always a
/// configuration (set of kept units) whose test gave FAIL.
pub trait Predictor {
    /// Returns the outcome that a test of `config` must have; `None` if the predictor cannot tell.
    fn predict(&self, config: &Config) -> Option<Outcome>;

    /// Receives the outcome of a configuration (set of kept units) that was run, to predict the
    /// outcomes of other configurations. Does nothing by default.
    fn learn(&mut self, config: &Config, outcome: Outcome) {
        let _ = (config, outcome);
    }
}

/// A predictor for units that are ordered, like the changes of a version history, so that each unit
/// needs all earlier ones: a configuration (set of kept units) that is not a prefix of the units is
/// UNRESOLVED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order;

impl Predictor for Order {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let is_prefix = config.count_below(config.len()) == config.len();
        (!is_prefix).then_some(Outcome::Unresolved)
    }
}

/// A predictor for units that need other units: a configuration (set of kept units) that keeps a
/// unit but not a unit that it requires is UNRESOLVED.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    pairs: Vec<(usize, usize)>,
}

impl Requires {
    /// Creates a predictor from pairs of units: the first unit of a pair requires the second.
    pub fn new(pairs: impl IntoIterator<Item = (usize, usize)>) -> Requires {
        Requires {
            pairs: pairs.into_iter().collect(),
        }
    }
}

impl Predictor for Requires {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let lacks = |(unit, required): &(usize, usize)| {
            config.contains(*unit) && !config.contains(*required)
        };
        self.pairs.iter().any(lacks).then_some(Outcome::Unresolved)
    }
}

/// The monotony rule (Cleve & Zeller, *Finding Failure Causes through Automated Testing*, AADEBUG
/// 2000): after `test(c) = PASS`, every subset of `c` is PASS without a run.
///
/// Use it only if the failure is monotone, which means that every superset of a failing
/// configuration fails. Otherwise it hides failures, and the result may not be minimal.
#[derive(Clone, Debug, Default)]
pub struct Monotony {
    /// Configurations that passed, whose subsets are predicted to pass; none is a subset of
    /// another.
    passed: Vec<Config>,
}

impl Predictor for Monotony {
    fn predict(&self, config: &Config) -> Option<Outcome> {
        let within = |passed: &Config| config.is_subset_of(passed);
        self.passed.iter().any(within).then_some(Outcome::Pass)
    }

    fn learn(&mut self, config: &Config, outcome: Outcome) {
        if outcome == Outcome::Pass && self.predict(config).is_none() {
            self.passed.retain(|passed| !passed.is_subset_of(config));
            self.passed.push(config.clone());
        }
    }
}
